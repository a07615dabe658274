"""One connection for many callers: what breaks it, and that nobody ever gets another's reply."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvloop

from shared.bus.base import Script
from shared.bus.embedded import Embedded
from shared.bus.redis import RedisBus
from shared.errors import BusUnreachable, ConfigurationError
from tests.bus.proxy import Proxy
from tests.support.clock import stopwatch
from tests.support.valkey import eventually, free_port

SILENCE = 0.3
ANSWER = Script("answer", "#!lua\nreturn 42")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Embedded]:
    """A server of this test's own, which it may harm."""
    made = Embedded(tmp_path, free_port())
    made.start()
    yield made
    made.stop()


@pytest.fixture
async def bus(server: Embedded) -> AsyncIterator[RedisBus]:
    made = RedisBus(server.url, silence=2.0)
    yield made
    await made.close()


async def answers(bus: RedisBus) -> bool:
    try:
        return bool(await bus.command("PING"))
    except BusUnreachable:
        return False


async def test_a_cancelled_caller_never_takes_or_leaves_anothers_reply(redis: RedisBus) -> None:
    calls = [asyncio.create_task(redis.command("ECHO", n)) for n in range(300)]
    await asyncio.sleep(0)  # all are on their way, none has its reply
    for call in calls[::3]:
        call.cancel()
    replies = await asyncio.gather(*calls, return_exceptions=True)
    assert [reply for n, reply in enumerate(replies) if n % 3] == [b"%d" % n for n in range(300) if n % 3]
    assert all(isinstance(reply, asyncio.CancelledError) for reply in replies[::3])
    assert await redis.command("ECHO", "after") == b"after"


async def test_who_is_cancelled_while_it_connects_spoils_nothing_for_the_others(valkey: str) -> None:
    async with Proxy(valkey) as proxy:
        proxy.deaf = True
        bus = RedisBus(proxy.url, silence=5.0)
        first, second = (asyncio.create_task(bus.command("ECHO", n)) for n in (1, 2))
        while not proxy.connections:
            await asyncio.sleep(0.005)
        proxy.deaf = False
        first.cancel()
        assert await asyncio.wait_for(second, 5) == b"2"
        assert first.cancelled()
        await bus.close()


async def test_what_is_asked_together_leaves_on_one_connection(valkey: str) -> None:
    async with Proxy(valkey) as proxy:
        bus = RedisBus(proxy.url)
        assert await asyncio.gather(*(bus.command("ECHO", n) for n in range(100))) == [
            b"%d" % n for n in range(100)
        ]
        assert proxy.connections == 1
        await bus.close()


async def test_a_killed_connection_is_told_to_all_who_wait_and_the_next_call_connects_anew(
    redis: RedisBus, valkey: str
) -> None:
    name = await redis.command("CLIENT", "ID")
    blocked = [asyncio.create_task(redis.command("BLPOP", f"nothing:{name}", 0))]
    blocked += [asyncio.create_task(redis.command("ECHO", n)) for n in range(3)]
    other = RedisBus(valkey)
    await asyncio.sleep(0)
    assert await other.command("CLIENT", "KILL", "ID", name) == 1
    for call in blocked:
        with pytest.raises(BusUnreachable):
            await asyncio.wait_for(call, 2)
    assert await redis.command("ECHO", "healed") == b"healed"
    await other.close()


async def test_a_half_open_connection_is_found_and_replaced(valkey: str) -> None:
    async with Proxy(valkey) as proxy:
        bus = RedisBus(proxy.url, silence=SILENCE)
        await bus.command("PING")
        proxy.freeze()
        async with stopwatch() as passed:
            with pytest.raises(BusUnreachable, match="no answer"):
                await bus.command("PING")
            assert passed() <= SILENCE * 1.2 + 0.2
        assert await asyncio.wait_for(bus.command("PING"), 2) == b"PONG"
        assert proxy.connections == 2
        await bus.close()


async def test_a_half_open_connection_is_found_although_new_questions_keep_coming(valkey: str) -> None:
    async with Proxy(valkey) as proxy:
        bus = RedisBus(proxy.url, silence=SILENCE)
        await bus.command("PING")
        proxy.freeze()
        calls = [asyncio.create_task(bus.command("PING"))]
        async with stopwatch() as passed:
            while not calls[0].done():
                assert passed() < 3 * SILENCE
                calls.append(asyncio.create_task(bus.command("PING")))
                await asyncio.wait(calls[:1], timeout=SILENCE / 10)
        replies = await asyncio.gather(*calls, return_exceptions=True)
        assert len(replies) > 5
        # The last one may have been asked on the next connection already.
        assert all(isinstance(reply, BusUnreachable) for reply in replies[:-1])
        await bus.close()


async def test_answers_that_only_come_one_after_another_are_no_silence(redis: RedisBus, valkey: str) -> None:
    patient = RedisBus(valkey, silence=1.5)  # a second more than one takes, for a machine that is busy
    waits = [patient.command("BLPOP", f"nothing:{n}", 0.5) for n in range(4)]
    assert (
        await asyncio.gather(*waits) == [None] * 4
    )  # together longer than a silence, none of them by itself
    await patient.close()


async def test_a_server_that_takes_the_connection_and_says_nothing_is_unreachable(valkey: str) -> None:
    async with Proxy(valkey) as proxy:
        proxy.deaf = True
        bus = RedisBus(proxy.url, silence=SILENCE)
        with pytest.raises(BusUnreachable):
            await asyncio.wait_for(bus.command("PING"), 5)
        with pytest.raises(BusUnreachable):
            await asyncio.wait_for(bus.read({"x": "0"}, 10), 5)
        await bus.close()


async def test_no_server_at_all_is_unreachable() -> None:
    bus = RedisBus(f"redis://127.0.0.1:{free_port()}", silence=1.0)
    with pytest.raises(BusUnreachable):
        await bus.command("PING")
    await bus.close()


async def test_scripts_that_the_server_forgot_are_sent_again(redis: RedisBus) -> None:
    assert await redis.script(ANSWER, "k") == 42
    await redis.command("SCRIPT", "FLUSH")
    assert await asyncio.gather(*(redis.script(ANSWER, "k") for _ in range(5))) == [42] * 5


async def test_after_a_killed_server_is_back_everything_works_again(server: Embedded, bus: RedisBus) -> None:
    await bus.command("SET", "kept", "yes")
    await bus.script(ANSWER, "k")
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGKILL)
    server._process.wait(5)
    with pytest.raises(BusUnreachable):
        await bus.command("PING")
    server.start()
    await eventually(lambda: answers(bus))
    assert await bus.script(ANSWER, "k") == 42
    assert await bus.command("GET", "kept") == b"yes"


async def test_a_read_whose_server_dies_is_unreachable_and_the_next_one_works(
    server: Embedded, bus: RedisBus
) -> None:
    reading = asyncio.create_task(bus.read({"s": "0"}, 20_000))
    await bus.command("PING")
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGKILL)
    with pytest.raises(BusUnreachable):
        await asyncio.wait_for(reading, 5)
    server._process.wait(5)
    server.start()
    await eventually(lambda: answers(bus))
    await bus.command("XADD", "s", "*", "data", "x")
    assert [entry.fields for entry in await bus.read({"s": "0"}, 1000)] == [{"data": b"x"}]


async def test_a_server_that_became_a_replica_is_left_for_whoever_answers_next(
    server: Embedded, bus: RedisBus
) -> None:
    before = await bus.command("CLIENT", "ID")
    await bus.command("REPLICAOF", "127.0.0.1", free_port())
    with pytest.raises(BusUnreachable, match="cannot take writes"):
        await bus.command("SET", "k", "v")
    other = RedisBus(server.url)
    await other.command("REPLICAOF", "NO", "ONE")
    await bus.command("SET", "k", "v")
    assert await bus.command("CLIENT", "ID") != before
    await other.close()


async def test_full_memory_says_what_to_do(bus: RedisBus) -> None:
    await bus.command("CONFIG", "SET", "maxmemory", "1mb")
    with pytest.raises(BusUnreachable, match=r"out of memory.*maxmemory"):
        await bus.command("SET", "k", "v" * 2_000_000)
        await bus.command("SET", "k2", "v")


async def test_a_wrong_password_is_a_wrong_setting_not_an_absent_server(
    server: Embedded,
) -> None:
    password = urlsplit(server.url).password or ""
    wrong = RedisBus(server.url.replace(password, "wrong"))
    with pytest.raises(ConfigurationError, match="does not let us in") as told:
        await wrong.command("PING")
    assert "wrong" not in str(told.value).replace("WRONGPASS", "")
    await wrong.close()
    missing = RedisBus(f"redis://127.0.0.1:{server.port}")
    with pytest.raises(ConfigurationError, match="does not let us in"):
        await missing.command("GET", "anything")
    await missing.close()


def test_an_address_that_is_none_is_a_wrong_setting() -> None:
    with pytest.raises(ConfigurationError, match="redis://"):
        RedisBus("localhost:6379")


async def test_closing_tells_whoever_still_waits(valkey: str) -> None:
    bus = RedisBus(valkey)
    await bus.command("PING")
    waiting = asyncio.create_task(bus.command("BLPOP", "nothing", 0))
    await asyncio.sleep(0)
    await bus.close()
    with pytest.raises(BusUnreachable, match="closed"):
        await asyncio.wait_for(waiting, 2)


def test_a_command_in_the_moment_after_the_connection_was_lost_is_a_bus_that_is_away(valkey: str) -> None:
    """On the event loop of workers, which raises where the standard one says nothing."""

    async def run() -> None:
        bus = RedisBus(valkey, silence=2.0)
        assert await bus.command("PING") == b"PONG"
        (lane,) = bus._lanes.values()
        wire = lane._wire
        assert wire is not None and wire._transport is not None
        wire._transport.abort()  # what follows is asked before anybody was told
        calls = [asyncio.create_task(bus.command("PING")) for _ in range(2)]
        for reply in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(reply, BusUnreachable), reply
        assert await answers(bus)
        await bus.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
