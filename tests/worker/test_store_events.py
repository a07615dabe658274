"""Changes to tasks are said on the bus, so that the scheduler looks at once; no write waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.bus.signing import Signer
from shared.errors import BusUnreachable, StoreUnavailable
from shared.store.base import Store
from shared.store.records import Log, Project, Setting, Task, TaskEvent
from shared.store.row import new_id
from shared.store.sqlite import SqliteStore
from shared.turns.lease import Lease
from shared.worker import store_events
from shared.worker.changes import Changes
from shared.worker.connection import Connection
from shared.worker.services import hooks as hooking
from shared.worker.services import scheduler
from shared.worker.services.hook_gate import AGENT, HookTools
from shared.worker.services.hooks import HookService
from shared.worker.services.scheduler import ACTOR, SchedulerService
from shared.worker.store_events import AnnouncingStore
from tests.support.counting import Counting
from tests.support.valkey import eventually, free_port, until

PROJECT = Project(slug="shop", name="Shop")


async def test_it_is_said_which_tables_changed_of_those_that_somebody_acts_on(
    redis: RedisBus, names: Names, store: SqliteStore
) -> None:
    heard: list[bytes] = []
    ready = asyncio.Event()

    async def listening() -> None:
        ready.set()

    listener = redis.listener([names.board], lambda _, data: heard.append(data), listening, names.board)
    running = asyncio.create_task(listener.run())
    await ready.wait()
    said = AnnouncingStore(store, redis, names)
    task = Task(slug="t", project_id=PROJECT.id, title="T")

    async def says(count: int) -> None:
        await until(lambda: len(heard) == count)

    await said.upsert([Log(agent="chatter", message="Nobody acts on lines of a log")])
    await said.upsert([Setting(id=new_id(), scope="s", key="k", value={})])
    await says(1)
    await said.insert(PROJECT)
    await says(2)
    await said.insert(task, [TaskEvent(task_id=task.id, event="created")])
    await says(3)
    assert await said.update(Task, {"title": "U"}, {"id": task.id, "version": 99}) == []
    history = TaskEvent(task_id=task.id, event="retried")
    assert await said.update(Task, {"title": "U"}, {"id": task.id, "version": 1}, [history])
    await says(4)
    assert [row.title for row in await said.select(Task)] == ["U"] and await said.count(Task) == 1
    await said.delete(Task, {"id": task.id})
    await says(5)
    assert heard == [b"settings", b"projects", b"task_events tasks", b"task_events tasks", b"tasks"]
    running.cancel()


async def test_a_write_whose_answer_was_lost_is_said_and_what_could_not_be_said_is_said_again(
    redis: RedisBus, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_events, "_AGAIN", 0.01)
    said: list[str] = []

    async def publish(_channel: str, data: str) -> int:
        said.append(data)
        if len(said) == 1:
            raise BusUnreachable("Redis is away")
        return 1

    async def lost(*_: object) -> None:
        raise StoreUnavailable("the answer is lost")

    store = cast(Store, SimpleNamespace(name="", insert=lost, update=lost, delete=lost))
    announces = AnnouncingStore(store, cast(Bus, SimpleNamespace(publish=publish)), names)
    with pytest.raises(StoreUnavailable):
        await announces.insert(PROJECT)
    await until(lambda: said == ["projects", "projects"])
    for call in (
        announces.update(Task, {"title": "U"}, {"slug": "t"}),
        announces.delete(Task, {"slug": "t"}),
    ):
        with pytest.raises(StoreUnavailable):
            await call
    await until(lambda: said[2:] in (["tasks"], ["tasks", "tasks"]))


async def test_with_redis_away_a_task_is_written_all_the_same(names: Names, store: SqliteStore) -> None:
    bus = RedisBus(f"redis://127.0.0.1:{free_port()}", silence=5.0)
    said = AnnouncingStore(store, bus, names)
    await said.insert(PROJECT)
    async with asyncio.timeout(4):  # less than the bus waits for a server
        await said.insert(Task(slug="t", project_id=PROJECT.id, title="T"))
    assert await said.count(Task) == 1
    await bus.close()


class Board:
    """Schedulers and hooks over one store, whose reads are counted."""

    def __init__(self, redis: RedisBus, names: Names, store: SqliteStore, lease_ms: int = 600_000) -> None:
        self.store = Counting(store)
        self.connection = Connection(redis, names, Signer("x" * 64), lease_ms)
        self.said = AnnouncingStore(store, redis, names)
        self._names, self._redis = names, redis
        self.running: list[asyncio.Task[None]] = []

    def start(self, instance: str, *, hooks: bool = False) -> asyncio.Task[None]:
        changes = Changes(self._redis, self._names)
        work: Any = SchedulerService(
            *(self.connection, cast(Store, self.store), self._lease(ACTOR, instance), changes),
            home=Path(),
            day_budget=None,
        )
        if hooks:
            tools = cast(HookTools, SimpleNamespace(store=self.store))
            work = HookService(tools, self.connection, self._lease(AGENT, instance), changes)
        task = asyncio.create_task(work.run())
        self.running += [task, asyncio.create_task(changes.run())]
        return task

    def _lease(self, name: str, instance: str) -> Lease:
        return Lease(self._redis, self._names, name, instance, self.connection.lease_ms)

    async def quiet(self) -> None:
        """Wait until nobody has read anything for a moment."""
        while True:
            before = self.store.calls.total()
            await asyncio.sleep(0.2)
            if before and self.store.calls.total() == before:
                return

    async def end(self) -> None:
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)


@pytest.fixture
async def board(redis: RedisBus, names: Names, store: SqliteStore) -> AsyncIterator[Board]:
    made = Board(redis, names, store)
    yield made
    await made.end()


async def test_with_nothing_to_do_the_store_is_read_as_often_as_fits_into_twenty_calls_a_minute(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (scheduler, hooking):  # a minute passes in 50 ms
        assert module._IDLE == 60.0
        monkeypatch.setattr(module, "_IDLE", 0.05)
        monkeypatch.setattr(module, "_REST", 0.001)
    await board.said.insert(PROJECT)
    board.start("a")
    board.start("a", hooks=True)
    await until(lambda: board.store.calls["select task_events"] >= 2)
    before, began = board.store.calls.total(), time.monotonic()
    await asyncio.sleep(1.0)
    minutes = (time.monotonic() - began) / 0.05
    assert 0 < (board.store.calls.total() - before) / minutes < 15, board.store.calls


async def test_nothing_is_read_until_somebody_writes_and_then_what_was_written(board: Board) -> None:
    board.start("a")
    board.start("a", hooks=True)
    await board.quiet()
    board.store.calls.clear()
    await board.said.upsert([Log(agent="chatter", message="a line")])
    await board.said.insert(PROJECT)
    await until(lambda: board.store.calls)
    await asyncio.sleep(0.1)
    assert board.store.calls == {"select projects": 1}


async def test_a_look_that_fails_reads_again_what_it_had_to_read(board: Board) -> None:
    board.start("a")
    await board.quiet()
    board.store.failing = 2
    board.store.calls.clear()
    await board.said.insert(PROJECT)
    await until(lambda: board.store.calls["select projects"] == 3)


async def test_a_scheduler_that_lets_go_is_followed_at_once_by_one_that_reads_everything(
    board: Board,
) -> None:
    first = board.start("a")
    await board.quiet()
    board.start("b")
    await asyncio.sleep(0.1)
    board.store.calls.clear()
    first.cancel()
    await until(lambda: board.store.calls["select tasks"] == 1, 5.0)  # its lease would hold for minutes


async def test_a_worker_that_is_away_is_looked_for_without_asking_the_store(board: Board) -> None:
    await board.said.insert(PROJECT)
    await board.said.insert(Task(slug="t", project_id=PROJECT.id, title="T", assignee="frontend"))
    board.start("a")
    await board.quiet()
    board.store.calls.clear()
    presence = board.connection.presence
    await presence.beat("frontend", "f1", {"status": "idle", "takes": 1, "kind": "coding"})

    async def assigned() -> bool:
        return (await board.said.select(Task))[0].status == "ASSIGNED"

    await eventually(assigned, 10.0)
    assert not board.store.calls["select projects"] and not board.store.calls["select agents"]
