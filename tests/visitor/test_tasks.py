"""The list of tasks says what became of the work of each."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from shared.store.records import Project, Task, TaskEvent, TaskStatus, project_key
from shared.store.sqlite import SqliteStore
from shared.visitor import Visitor, tasks


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

        visitor = cast(Visitor, SimpleNamespace(store=opened))
        told = {card["id"]: card["work"] for card in await tasks.tasks(visitor)}
        assert (await tasks.task(visitor, "out"))["work"] == "discarded"
    finally:
        await store.close()
    assert told == {"kept": None, "in": "merged", "out": "discarded", "again": None}
