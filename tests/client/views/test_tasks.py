"""The list of tasks says what became of the work of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.client import Client
from shared.client.views import lookup
from shared.client.views.tasks import tasks
from shared.errors import UsageError
from shared.store.records import Project, Task, TaskEvent, TaskStatus, project_key
from shared.store.sqlite import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An empty one."""
    made = SqliteStore(tmp_path / "promptdock.db")
    await made.open()
    yield made
    await made.close()


def client_of(store: SqliteStore) -> Client:
    """Somebody who reads it."""

    async def opened() -> SqliteStore:
        return store

    return cast(Client, SimpleNamespace(store=opened))


async def listed(store: SqliteStore, **wanted: Any) -> set[str]:
    """The ids of the tasks that are like that."""
    return {card["id"] for card in await tasks.tasks(client_of(store), tasks.Filter(**wanted))}


async def test_the_list_is_that_of_a_state_a_project_or_a_person(store: SqliteStore) -> None:
    shop, default = project_key("shop"), project_key("default")
    await store.upsert([Project(slug="shop", name="Shop"), Project(slug="default", name="Default")])
    made: list[tuple[str, Any, TaskStatus, str]] = [
        ("calm-ivy", shop, "COMPLETED", "ann"),
        ("calm-otter", shop, "IN_PROGRESS", "bob"),
        ("warm-ivy", default, "FAILED", "ann"),
    ]
    for slug, project, status, user in made:
        await store.insert(Task(slug=slug, project_id=project, title=slug, status=status, user_id=user))
    assert await listed(store) == {"calm-ivy", "calm-otter", "warm-ivy"}
    assert await listed(store, statuses=["failed", "in-progress"]) == {"calm-otter", "warm-ivy"}
    assert await listed(store, project="sho") == {"calm-ivy", "calm-otter"}, "a part of its name is enough"
    assert await listed(store, project="shop", user="ann") == {"calm-ivy"}
    assert len(await listed(store, limit=2)) == 2
    with pytest.raises(UsageError, match="there is no state 'NONSENSE'"):
        await listed(store, statuses=["nonsense"])
    with pytest.raises(UsageError, match="there is no project 'toys'"):
        await listed(store, project="toys")


async def test_a_part_of_the_id_shows_the_task(store: SqliteStore) -> None:
    await store.upsert([Project(slug="shop", name="Shop")])
    for slug in ("calm-ivy", "calm-otter"):
        await store.insert(Task(slug=slug, project_id=project_key("shop"), title=slug))
    client = client_of(store)
    assert (await tasks.task(client, "ott"))["id"] == "calm-otter"
    with pytest.raises(UsageError, match="part of several"):
        await tasks.task(client, "calm")
    assert await lookup.meant(client, {"task_id": "calm-i", "reason": "x"}) == {
        "task_id": "calm-ivy",
        "reason": "x",
    }


async def test_work_that_was_merged_or_discarded_is_told_until_the_task_begins_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "promptdock.db")
    await store.open()
    lives = {
        "kept": ["started"],
        "in": ["started", "merged"],
        "out": ["started", "discarded"],
        "again": ["started", "merged", "started"],
    }
    done: TaskStatus = "COMPLETED"
    project = project_key("default")
    try:
        await store.upsert([Project(id=project, slug="default", name="Default")])
        for name, events in lives.items():
            task = Task(slug=name, project_id=project, title=name, status=done)
            await store.insert(task)
            for event in events:
                row = TaskEvent(task_id=task.id, project_id=project, event=event, to_status=done, actor="ann")
                await store.insert(row)

        async def opened() -> SqliteStore:
            return store

        client = cast(Client, SimpleNamespace(store=opened))
        told = {card["id"]: card["work"] for card in await tasks.tasks(client)}
        assert (await tasks.task(client, "out"))["work"] == "discarded"
    finally:
        await store.close()
    assert told == {"kept": None, "in": "merged", "out": "discarded", "again": None}


RESULT: dict[str, Any] = {
    "agent": "backend", "verified": "verified", "tokens": 12, "cost": 0.5, "branch": "promptdock/calm-otter",
    "commits": ["abc123"], "diff_stat": " pond.py | 2 ++\n", "summary": "It is dug.",
    "commands": [{"command": "make test", "exit_code": 2, "by": "harness"}, {"command": "ls", "exit_code": 0}],
    "clashes": [{"branch": "promptdock/warm-ivy", "files": ["pond.py"]}],
}  # fmt: skip


def test_a_receipt_says_what_was_done_and_marks_what_failed() -> None:
    lines = tasks.receipt(RESULT)
    assert ["".join(text for text, _ in line) for line in lines] == [
        "",
        "backend: verified, 12 tokens, $0.5000",
        "  branch   promptdock/calm-otter",
        "  commit   abc123",
        "  check    exit 2  make test",
        "  command  exit 0  ls",
        "  clashes with promptdock/warm-ivy: pond.py",
        " pond.py | 2 ++",
        "It is dug.",
    ]
    marked = {text: what for line in lines for text, what in line if what}
    assert marked == {"verified": "state", "exit 2": "failed"}


def test_an_event_without_a_new_state_is_a_line_of_the_history_too() -> None:
    event = {"at": "2026-03-01T10:00:00+00:00", "event": "note", "from": None, "to": None, "actor": "ada"}
    [line] = tasks.history({"history": [event, {**event, "to": "READY"}][:1]})
    assert "".join(text for text, _ in line).split()[-2:] == ["note", "ada"]


def test_the_question_of_a_task_is_shown_with_what_it_can_be_answered_with() -> None:
    asked = {"asked": "Which port?", "context": "Both are free.", "options": ["80", "8080"]}
    assert tasks.question(asked) == ["it asks: Which port?", "  Both are free.", "  1. 80", "  2. 8080"]


async def test_a_task_that_rests_with_its_project_says_so(store: SqliteStore) -> None:
    shop = project_key("shop")
    await store.upsert([Project(slug="shop", name="Shop", status="PAUSED")])
    states: list[tuple[str, TaskStatus]] = [("calm-ivy", "READY"), ("warm-ivy", "COMPLETED")]
    for slug, status in states:
        await store.insert(Task(slug=slug, project_id=shop, title=slug, status=status))
    cards = await tasks.tasks(client_of(store), tasks.Filter())
    assert {tasks.state(card) for card in cards} == {"READY, project paused", "COMPLETED"}
    assert tasks.state(await tasks.task(client_of(store), "calm-ivy")) == "READY, project paused"
    await store.update(Project, {"status": "ACTIVE"}, {"slug": "shop"})
    assert tasks.state(await tasks.task(client_of(store), "calm-ivy")) == "READY"
