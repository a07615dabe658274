"""What a cluster holds in Redis is bounded: over the bound senders are told so, and it is lifted again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.turns.pressure import Pressure
from shared.turns.queue import Queue
from tests.faults.server import Server
from tests.turns.ground import mail


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server whose memory only this test limits."""
    made = Server(tmp_path)
    await made.up()
    yield made
    made.stop()


@pytest.fixture
async def queue(server: Server) -> AsyncIterator[Queue]:
    bus = RedisBus(server.url)
    yield Queue(bus, Names("room"), "chatter")
    await bus.close()


async def outcome(queue: Queue, id: str) -> str:
    return (await queue.post(mail(id))).outcome


async def test_over_85_percent_of_its_memory_nothing_new_is_accepted_until_there_is_room(
    server: Server, queue: Queue
) -> None:
    room = Pressure(queue)
    await room.look()
    assert await outcome(queue, "m1") == "accepted"
    info = (await queue.bus.command("INFO", "memory")).decode()
    used = int(info.partition("used_memory:")[2].split()[0])
    await server.tell("CONFIG", "SET", "maxmemory", str(int(used / 0.93)))
    await room.look()
    assert [await outcome(queue, "m2"), await outcome(queue, "m1")] == ["busy", "known"]
    await server.tell("CONFIG", "SET", "maxmemory", str(used * 2))
    await room.look()
    assert await outcome(queue, "m2") == "accepted"


async def test_rows_that_wait_for_a_store_that_stays_away_are_bounded_where_memory_is_not(
    queue: Queue,
) -> None:
    room = Pressure(queue, waiting=2)
    for id in ("m1", "m2", "m3"):  # each is a row, too
        await room.look()
        assert await outcome(queue, id) == "accepted"
    await room.look()
    assert await outcome(queue, "m4") == "busy"
    assert await outcome(queue, "m1") == "known"
    await queue.bus.command("DEL", f"{queue.prefix}archive")  # the Store is back, and took them
    await room.look()
    assert await outcome(queue, "m4") == "accepted"
