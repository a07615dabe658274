"""One Chatter deletes what is too old, once a day."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.store.records import Log, Setting, now
from shared.store.sqlite import SqliteStore
from shared.turns.lease import Lease
from shared.worker.services import daily, retention
from shared.worker.services.retention import RetentionService


async def test_old_rows_are_deleted_once_a_day_by_one_worker(
    redis: RedisBus, names: Names, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daily, "_REST", 0.0)
    first, second = (
        RetentionService(store, Lease(redis, names, retention.NAME, holder, 60_000), {"logs": 5})
        for holder in ("a", "b")
    )

    async def old() -> None:
        await store.insert(Log(created_at=now() - timedelta(days=6), agent="chatter", message="m"))

    await old()
    await Lease(redis, names, retention.NAME, "a", 60_000).take()
    assert await second.look() == {} and await store.count(Log) == 1
    assert await first.look() == {"logs": 1} and await store.count(Log) == 0
    await old()
    assert await second.look() == {} and await store.count(Log) == 1
    [last] = await store.select(Setting, {"scope": "retention"})
    assert last.value["deleted"] == {"logs": 1}
    await store.update(Setting, {"value": {"at": (now() - timedelta(days=1)).isoformat()}}, {"id": last.id})
    assert await second.look() == {"logs": 1}
