"""A task that is watched: what its agent does and says, its states, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shared.bus.activity import stream_of
from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.client import Client
from shared.client.views.tasks.watch import Seen, TaskWatch
from shared.settings import Settings
from shared.store.records import Project, Task, TaskEvent, TaskStatus, project_key
from shared.store.sqlite import SqliteStore
from tests.support.valkey import names, redis, until, valkey

__all__ = ["names", "redis", "valkey"]
PROJECT = project_key("default")


class Ground:
    """A task whose worker the test plays."""

    def __init__(self, client: Client, store: SqliteStore, redis: RedisBus, names: Names) -> None:
        self.client, self._store, self._redis, self._names = client, store, redis, names
        self.task = Task(
            slug="calm-otter", project_id=PROJECT, title="Dig", assignee="backend", request_id="r-1"
        )
        self.seen: list[Seen] = []
        self.watch = TaskWatch(client, "calm-otter")

    async def moves(self, event: str, to: TaskStatus, **changes: Any) -> None:
        """A change of its state, as a worker and the scheduler tell it."""
        await self._store.update(Task, {"status": to, **changes}, {"id": self.task.id})
        row = TaskEvent(task_id=self.task.id, project_id=PROJECT, event=event, to_status=to, actor="backend")
        await self._store.insert(row)
        await self._add("@tasks", event="task", task_id="calm-otter", state=to)

    async def does(self, event: str, **payload: Any) -> None:
        """A live event of its request."""
        await self._add(stream_of("backend", "r-1"), event=event, **payload)

    async def _add(self, session: str, **told: Any) -> None:
        await self._redis.command("XADD", self._names.stream(session), "*", "data", json.dumps(told))

    async def begin(self) -> asyncio.Task[None]:
        """Watch it beside the test."""
        await self._store.upsert([Project(id=PROJECT, slug="default", name="Default")])
        await self._store.insert(self.task)

        async def watch() -> None:
            async for seen in self.watch.seen():
                self.seen.append(seen)

        return asyncio.create_task(watch())

    def told(self, *kinds: str) -> list[str]:
        return [seen.text for seen in self.seen if seen.kind in kinds]


@pytest.fixture
async def ground(valkey: str, names: Names, redis: RedisBus, tmp_path: Path) -> AsyncIterator[Ground]:
    store = SqliteStore(tmp_path / "promptdock.db")
    await store.open()
    settings = Settings(REDIS_URL=valkey, PROMPTDOCK_HOME=tmp_path, PROMPTDOCK_NAMESPACE=names.namespace)
    async with Client(settings) as client:
        yield Ground(client, store, redis, names)
    await store.close()


async def test_each_act_and_what_is_said_is_told_in_order_until_the_task_has_ended(ground: Ground) -> None:
    watching = await ground.begin()
    await ground.moves("started", "IN_PROGRESS")
    await ground.does("chunk", content="I look.")
    await ground.does("tool_call", tool="bash", arguments={"command": "make test"})
    await ground.does("tool_result", tool="bash", content={"error": "exit 2"}, is_error=True)
    await until(lambda: bool(ground.told("failed")))
    assert [(seen.kind, seen.text) for seen in ground.seen if seen.kind != "state"] == [
        ("said", "I look."),
        ("act", "bash: make test"),
        ("failed", "bash: exit 2"),
    ]
    assert ground.told("state") == ["started by backend: IN_PROGRESS"]
    assert ground.watch.ok is None
    await ground.moves("completed", "COMPLETED")
    await asyncio.wait_for(watching, 10)
    assert ground.watch.ok is True
    assert ground.told("state")[-1] == "completed by backend: COMPLETED"


async def test_a_question_says_how_it_is_answered_and_a_failure_when_it_is_tried_again(
    ground: Ground,
) -> None:
    watching = await ground.begin()
    await ground.moves("question", "WAITING_INPUT", question="Which colour?")
    await until(lambda: bool(ground.told("question")))
    assert "Which colour?" in ground.told("question")[0]
    assert "promptdock tasks answer calm-otter" in ground.told("question")[0]
    await ground.moves("failed", "FAILED", error="its checks failed")
    await until(lambda: bool(ground.told("again")))
    (told,) = ground.told("again")
    assert told.startswith("its checks failed; it is tried again in ")
    assert 20 < next(seen for seen in ground.seen if seen.kind == "again").detail["again_in"] <= 30
    await ground.moves("retries_spent", "BLOCKED")
    await asyncio.wait_for(watching, 10)
    assert ground.watch.ok is False


async def test_the_next_attempt_is_followed_under_its_own_request(ground: Ground) -> None:
    watching = await ground.begin()
    await ground.does("tool_call", tool="view", arguments={"path": "a.py"})
    await until(lambda: ground.told("act") == ["view: a.py"])
    await ground.moves("started", "IN_PROGRESS", request_id="r-2")
    await ground._add(stream_of("backend", "r-2"), event="tool_call", tool="view", arguments={"path": "b.py"})
    await until(lambda: ground.told("act") == ["view: a.py", "view: b.py"])
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def test_what_an_agent_says_after_its_checks_is_another_message(ground: Ground) -> None:
    watching = await ground.begin()
    await ground.moves("started", "IN_PROGRESS")
    await ground.does("chunk", content="It is written.")
    await ground.does("checks", commands=["make test"])
    await ground.does("chunk", content="I correct it.")
    await ground.does("done")
    await until(lambda: bool(ground.told("said")) and ground.told("said")[-1].endswith("I correct it."))
    assert ground.told("said") == ["It is written.", "I correct it."]
    await ground.moves("completed", "COMPLETED")
    await asyncio.wait_for(watching, 10)
