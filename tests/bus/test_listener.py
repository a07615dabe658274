"""A subscription that finds out by itself that its connection is dead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.errors import BusUnreachable
from tests.bus.proxy import Proxy
from tests.support.clock import stopwatch
from tests.support.valkey import eventually, until

SILENCE = 0.45


class Ears:
    """What a listener heard, and how often it was made ready."""

    def __init__(self, refuse: int = 0) -> None:
        self.heard: list[bytes] = []
        self.ready = 0
        self._refuse = refuse

    def take(self, channel: str, data: bytes) -> None:
        self.heard.append(data)

    async def on_ready(self) -> None:
        if self._refuse:
            self._refuse -= 1
            raise BusUnreachable("Redis does not answer")
        self.ready += 1


Listen = Callable[[str, Ears], asyncio.Task[None]]


@pytest.fixture
async def listen(names: Names) -> AsyncIterator[Listen]:
    """Listen on one channel through a URL."""
    made: list[tuple[RedisBus, asyncio.Task[None]]] = []

    def listen(url: str, ears: Ears) -> asyncio.Task[None]:
        bus = RedisBus(url, silence=SILENCE)
        listener = bus.listener([names.channel("c")], ears.take, ears.on_ready, "")
        made.append((bus, asyncio.create_task(listener.run())))
        return made[-1][1]

    yield listen
    for bus, task in made:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await bus.close()


async def test_a_half_open_connection_is_noticed_and_made_again_in_time(
    valkey: str, redis: RedisBus, names: Names, listen: Listen
) -> None:
    async with Proxy(valkey) as proxy:
        listen(proxy.url, ears := Ears())
        await until(lambda: ears.ready == 1)
        proxy.freeze()
        async with stopwatch() as passed:
            await redis.publish(names.channel("c"), b"into the void")
            await until(lambda: ears.ready == 2)
            assert passed() < SILENCE * 1.5 + 0.5
        await redis.publish(names.channel("c"), b"heard")
        await until(lambda: ears.heard == [b"heard"])


async def test_a_quiet_channel_is_no_dead_connection(valkey: str, listen: Listen) -> None:
    async with Proxy(valkey) as proxy:
        task = listen(proxy.url, ears := Ears())
        await until(lambda: ears.ready == 1)
        await asyncio.wait([task], timeout=SILENCE * 2.5)  # nothing is published all the while
        assert (ears.ready, proxy.connections, task.done()) == (1, 1, False)


async def test_a_cut_connection_is_made_again(
    valkey: str, redis: RedisBus, names: Names, listen: Listen
) -> None:
    async with Proxy(valkey) as proxy:
        listen(proxy.url, ears := Ears())
        for n in range(1, 4):
            await until(lambda n=n: ears.ready == n)  # type: ignore[misc]
            await redis.publish(names.channel("c"), b"%d" % n)
            await until(lambda n=n: ears.heard[-1:] == [b"%d" % n])  # type: ignore[misc]
            proxy.cut()
        assert ears.heard == [b"1", b"2", b"3"]


async def test_a_server_that_takes_no_subscription_is_tried_again_until_it_does(
    valkey: str, listen: Listen
) -> None:
    async with Proxy(valkey) as proxy:
        proxy.deaf = True
        listen(proxy.url, ears := Ears())
        await until(lambda: proxy.connections >= 2)
        assert ears.ready == 0
        proxy.deaf = False
        await until(lambda: ears.ready == 1)


async def test_a_listener_whose_readiness_failed_for_want_of_redis_makes_itself_ready_again(
    valkey: str, redis: RedisBus, names: Names, listen: Listen
) -> None:
    task = listen(valkey, ears := Ears(refuse=2))
    await until(lambda: ears.ready == 1)
    await redis.publish(names.channel("c"), b"heard")
    await until(lambda: ears.heard == [b"heard"])
    assert not task.done()


async def test_a_cancelled_listener_leaves_no_subscription(
    valkey: str, redis: RedisBus, names: Names, listen: Listen
) -> None:
    task = listen(valkey, ears := Ears())
    await until(lambda: ears.ready == 1)
    assert await redis.listeners(names.channel("c")) == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    async def gone() -> bool:
        return await redis.listeners(names.channel("c")) == 0

    await eventually(gone)


def test_a_worker_that_was_stalled_itself_does_not_take_its_connections_for_dead(
    valkey: str, names: Names
) -> None:
    """On the loop of the workers, where clocks come before sockets: the replies are there, and still unread."""

    async def stalled() -> tuple[int, list[object]]:
        bus, ears = RedisBus(valkey, silence=SILENCE), Ears()
        listening = asyncio.create_task(
            bus.listener([names.channel("c")], ears.take, ears.on_ready, "").run()
        )
        await until(lambda: ears.ready == 1)
        replies = [await bus.command("PING")]
        for _ in range(2):
            asked = asyncio.create_task(bus.command("PING"))
            await asyncio.sleep(0)
            time.sleep(1.5 * SILENCE)  # noqa: ASYNC251 - it is this loop that must stand still
            replies.append(await asked)
        await asyncio.wait([listening], timeout=SILENCE / 2)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await bus.close()
        return ears.ready, replies

    assert uvloop.run(stalled()) == (1, [b"PONG"] * 3)
