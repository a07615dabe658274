"""What a message, a consult and the end of a turn ask of Redis, counted: no step costs more without somebody noticing.

A bound is what they ask now. Who needs more says in the commit what it costs, and raises it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from shared.bus.base import Bus
from shared.bus.keys import CHATTER_OUTPUT, Names
from shared.bus.redis import RedisBus
from shared.turns.queue import Claim, Completion, Mail, Queue
from tests.turns.ground import claimed, closing, mail

BACKGROUND = {"hello", "auth", "client|setname", "config|resetstat", "info", "ping", "eval", "script|load"}
TRIPS = "evalsha"


@pytest.fixture
async def bus(valkey: str) -> AsyncIterator[Bus]:
    made = RedisBus(valkey, silence=5.0)
    yield made
    await made.close()


@pytest.fixture
def queue(bus: Bus, names: Names) -> Queue:
    return Queue(bus, names, "chatter", lease_ms=60_000)


@pytest.fixture
def asker(bus: Bus, names: Names) -> Queue:
    return Queue(bus, names, "asker", lease_ms=60_000)


async def begin(queue: Queue) -> None:
    """Count from here on."""
    await queue.bus.command("CONFIG", "RESETSTAT")


async def counted(queue: Queue) -> dict[str, int]:
    """How often the server ran which command since, those of scripts included."""
    lines = (await queue.bus.command("INFO", "commandstats")).decode().splitlines()
    told = dict(line.removeprefix("cmdstat_").split(":", 1) for line in lines if line.startswith("cmdstat_"))
    calls = {name: int(text.partition("calls=")[2].partition(",")[0]) for name, text in told.items()}
    return {name: calls[name] for name in sorted(calls) if name not in BACKGROUND}


def commands(calls: dict[str, int]) -> int:
    """Those inside of scripts."""
    return sum(calls.values()) - calls[TRIPS]


async def talk(queue: Queue, id: str, session: str) -> Claim:
    """A person's message, and its turn to the end, as a worker that is busy carries it out."""
    await queue.post(mail(id, session, person="s:ann", owner="s:ann"))
    claim = await claimed(queue)
    record = json.dumps({"k": "said"}).encode()
    await queue.finish(claim.session, claim.epoch, closing(window=[record], seq=1, rows=b"[]"))
    return claim


async def test_a_plain_message_asks_redis_so_much(queue: Queue) -> None:
    await talk(queue, "m0", "warm")
    await begin(queue)
    await talk(queue, "m1", "new")
    calls = await counted(queue)
    assert calls[TRIPS] == 3  # post, claim, finish
    assert commands(calls) <= 47, calls


async def test_a_message_without_threads_touches_no_key_of_theirs(queue: Queue) -> None:
    await talk(queue, "m0", "s")
    await begin(queue)
    await talk(queue, "m1", "s")
    calls = await counted(queue)
    assert commands(calls) <= 50, calls
    # One of the turn that is claimed; where it is held, and whose it is, is asked for where there are threads.
    assert calls["hmget"] == 1, calls


async def test_a_message_that_is_handed_to_an_idle_worker_asks_redis_so_much(queue: Queue) -> None:
    channel = queue.names.channel(queue.keys.handoff("w1"))
    queue.handoff = lambda: f"60000 w1 {channel}"
    heard: asyncio.Queue[Claim | None] = asyncio.Queue()
    ready = asyncio.Event()

    async def on_ready() -> None:
        ready.set()

    def on_message(_channel: str, data: bytes) -> None:
        heard.put_nowait(queue.handed_over(data))

    listener = asyncio.create_task(queue.bus.listener([channel], on_message, on_ready, channel).run())
    try:
        async with asyncio.timeout(10):
            await ready.wait()
            await talk(queue, "m0", "warm")
            await begin(queue)
            await queue.post(mail("m1", "new"))
            claim = await heard.get()
        assert claim is not None
        await queue.finish(claim.session, claim.epoch, Completion(channel=CHATTER_OUTPUT, output="done"))
        calls = await counted(queue)
    finally:
        listener.cancel()
        await asyncio.wait([listener])
    assert calls[TRIPS] == 2  # post, finish
    assert commands(calls) <= 30, calls


async def test_a_consult_asks_redis_so_much(queue: Queue, asker: Queue) -> None:
    await asker.post(Mail("m1", "m1", "asked", b"{}"))
    turn = await claimed(asker)
    await begin(queue)
    await asker.step(turn.session, turn.epoch, 0, -1, [], calls=["m1.0.0"])
    await queue.post(Mail("m1.0.0", "m1.0.0", "agent:chatter", b"{}"))
    consult = await claimed(queue)
    await queue.step(consult.session, consult.epoch, 0, -1, [b"{}"])
    assert await asker.respond("m1.0.0", "agent:asker", b"{}") == "delivered"
    await queue.finish(consult.session, consult.epoch, Completion())
    calls = await counted(queue)
    assert calls[TRIPS] == 6  # note, post, claim, journal, respond, finish
    assert commands(calls) <= 54, calls
