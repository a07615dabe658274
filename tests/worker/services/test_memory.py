"""One Chatter tidies memory once a day; several begin to draw from one conversation once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.bus.signing import Signer
from shared.memory.upkeep import Upkept
from shared.store.records import Memory, Setting, now
from shared.store.sqlite import SqliteStore
from shared.turns.lease import Lease
from shared.worker.connection import Connection
from shared.worker.runners.chat import drawing, summary
from shared.worker.services import daily, memory
from shared.worker.services.memory import MemoryService
from tests.memory.ground import BEGUN, fact


async def test_memory_is_tidied_once_a_day_by_one_worker(
    redis: RedisBus, names: Names, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daily, "_REST", 0.0)
    first, second = (
        MemoryService(
            Connection(redis, names, Signer("x" * 64), 12_000),
            store,
            Lease(redis, names, memory.NAME, one, 60_000),
            "chatter",
            1000,
        )
        for one in ("a", "b")
    )
    await store.upsert([fact("it was in May", valid_to=BEGUN), fact("it is in June")])
    await Lease(redis, names, memory.NAME, "a", 60_000).take()
    assert await second.tidy() is None
    assert await first.tidy() == Upkept(archived=1, kept=1)
    assert await second.tidy() is None
    [last] = await store.select(Setting, {"scope": memory.NAME})
    await store.update(Setting, {"value": {"at": (now() - timedelta(days=1)).isoformat()}}, {"id": last.id})
    assert await second.tidy() == Upkept(archived=0, kept=1)
    assert await store.count(Memory) == 2


async def test_a_conversation_that_rests_is_drawn_from_once_though_several_look(
    redis: RedisBus, names: Names
) -> None:
    connection = Connection(redis, names, Signer("x" * 64), 12_000)
    await drawing.plan(connection, "s", 0)
    await drawing.plan(connection, "s", 60_000)  # it is due already
    await drawing.plan(connection, "later", 60_000)
    key = names.undrawn()
    entry = await redis.command("ZSCORE", key, "s")
    assert await drawing.begin(connection, "chatter") == 1
    await redis.command("ZADD", key, entry, "s")  # another looked at the same moment
    assert await drawing.begin(connection, "chatter") == 1
    assert await connection.queue("chatter").size() == 1
    assert await drawing.begin(connection, "chatter") == 0


async def test_a_conversation_is_summarised_when_it_rests_by_the_agent_that_was_talked_with(
    redis: RedisBus, names: Names
) -> None:
    connection = Connection(redis, names, Signer("x" * 64), 12_000)
    await summary.plan(connection, "chatter", "s", 0)
    await summary.plan(connection, "chatter", "s", 60_000)  # it was gone on with
    await summary.plan(connection, "poet", "two words", 0)
    assert await summary.begin(connection) == 1
    assert [await connection.queue(agent).size() for agent in ("chatter", "poet")] == [0, 1]
    entry = await redis.command("ZSCORE", names.unsummarised(), "chatter s")
    assert entry is not None
    await redis.command("ZADD", names.unsummarised(), 0, "poet two words")
    assert await summary.begin(connection) == 1 and await summary.begin(connection) == 0
