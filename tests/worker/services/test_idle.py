"""Which conversations are asked to rest: those in whose channel, or of whose person, nobody spoke for long."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest

from shared.store.records import Session
from shared.store.row import now
from shared.store.sqlite import SqliteStore
from shared.turns.lease import Lease
from shared.worker.services import idle
from shared.worker.services.idle import IdleService
from tests.support.sqlite import store
from tests.worker.ground import connected

__all__ = ["store"]

ROOM = "discord:7"
AGO = timedelta(hours=5)


def service(store: SqliteStore) -> IdleService:
    connection = connected()
    lease = Lease(connection.bus, connection.names, "idle", "w1", 10_000)
    return IdleService(connection, store, lease, "chatter", 3 * 3_600_000)


def row(key: str, user: str, channel: str | None, at: datetime, agent: str = "chatter") -> Session:
    return Session(key=key, user_id=user, channel=channel, agent=agent, talked=True, last_active_at=at)


async def test_a_word_in_one_thread_of_a_channel_keeps_all_of_them(store: SqliteStore) -> None:
    long_ago = now() - AGO
    await store.upsert(
        [
            row("t1", "ada", ROOM, long_ago),
            row("t2", "bob", ROOM, now()),
            row("t3", "bob", "discord:8", long_ago),
            row("t4", "eve", "discord:9", long_ago, agent="poet"),
            row("own", "ada", None, long_ago),
            row("his", "bob", None, long_ago),
        ]
    )
    found = await service(store).look()
    assert sorted(found) == ["own", "t3", "t4"], "bob spoke in another of his"


async def test_a_thread_that_runs_keeps_its_channel_though_its_turn_has_not_ended(store: SqliteStore) -> None:
    await store.upsert([row("t1", "ada", ROOM, now() - AGO)])
    resting = service(store)
    keys = resting._connection.names.keys("chatter")
    await resting._connection.bus.command("ZADD", keys.channels, int(time.time() * 1000), ROOM)
    assert await resting.look() == []
    await resting._connection.bus.command("ZADD", keys.channels, 1, ROOM)
    assert await resting.look() == ["t1"]


async def test_a_busy_channel_hides_no_other(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "_SOME", 3)
    threads = [row(f"t{n}", "ada", ROOM, now() - 2 * AGO) for n in range(7)]
    await store.upsert(
        [*threads, row("new", "ada", ROOM, now()), row("quiet", "bob", "discord:8", now() - AGO)]
    )
    resting = service(store)
    assert [await resting.look() for _ in range(4)] == [[], [], ["quiet"], []]
