"""Changes to tasks are said on the bus, so that the scheduler looks at once; no write waits for it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.store.records import Project, Setting, Task
from shared.store.row import new_id
from shared.store.sqlite import SqliteStore
from shared.worker import scheduling
from shared.worker.announcing import Announcing
from shared.worker.parts import Parts
from shared.worker.scheduling import Scheduling
from tests.support.valkey import free_port, until

PROJECT = Project(slug="shop", name="Shop")


async def test_whoever_schedules_hears_of_tasks_and_of_nothing_else(
    redis: RedisBus, names: Names, store: SqliteStore
) -> None:
    heard: list[bytes] = []
    ready = asyncio.Event()

    async def listening() -> None:
        ready.set()

    listener = redis.listener([names.board], lambda _, data: heard.append(data), listening, names.board)
    running = asyncio.create_task(listener.run())
    await ready.wait()
    said = Announcing(store, redis, names)
    task = Task(slug="t", project_id=PROJECT.id, title="T")

    async def says(count: int) -> None:
        await until(lambda: len(heard) == count)

    await said.upsert([Setting(id=new_id(), scope="s", key="k", value={})])
    await said.insert(PROJECT)
    await says(1)
    await said.insert(task)
    await says(2)
    assert await said.update(Task, {"title": "U"}, {"id": task.id, "version": 99}) == []
    assert await said.update(Task, {"title": "U"}, {"id": task.id})
    await says(3)
    assert [row.title for row in await said.select(Task)] == ["U"] and await said.count(Task) == 1
    await said.delete(Task, {"id": task.id})
    await says(4)
    running.cancel()


async def test_with_redis_away_a_task_is_written_all_the_same(names: Names, store: SqliteStore) -> None:
    bus = RedisBus(f"redis://127.0.0.1:{free_port()}", silence=5.0)
    said = Announcing(store, bus, names)
    await said.insert(PROJECT)
    async with asyncio.timeout(4):  # less than the bus waits for a server
        await said.insert(Task(slug="t", project_id=PROJECT.id, title="T"))
    assert await said.count(Task) == 1
    await bus.close()


async def test_the_scheduler_looks_as_soon_as_a_task_changes_and_again_by_the_clock(
    redis: RedisBus, names: Names, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    async def tick(_: Scheduling) -> int:
        looks.append(await store.count(Task))
        return 0

    def parts() -> Parts:
        settings = SimpleNamespace(lease_ms=600_000)
        return cast(Parts, SimpleNamespace(bus=redis, names=names, store=store, settings=settings))

    monkeypatch.setattr(Scheduling, "tick", tick)
    monkeypatch.setattr(scheduling, "_PAUSE", 3600.0)
    running = asyncio.create_task(Scheduling(parts(), "a").run())
    await until(lambda: len(looks) >= 2)  # its first, and what may have been said before it heard anything
    said = Announcing(store, redis, names)
    await said.insert(PROJECT)
    await said.insert(Task(slug="t", project_id=PROJECT.id, title="T"))
    await until(lambda: looks[-1] == 1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    monkeypatch.setattr(scheduling, "_PAUSE", 0.05)
    clock, before = asyncio.create_task(Scheduling(parts(), "b").run()), len(looks)
    await until(lambda: len(looks) >= before + 4)
    clock.cancel()
    await asyncio.gather(clock, return_exceptions=True)
