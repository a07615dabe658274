"""The list of tasks says what became of the work of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.client import Client
from shared.client.views import lookup, tasks
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
        "out": ["started", "merged", "discarded"],
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
