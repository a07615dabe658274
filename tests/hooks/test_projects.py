"""Which project an event belongs to: only that project's hooks are launched for it."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import pytest

from shared.hooks import triggers
from shared.store.records import Hook, HookRun, Project, Task, TaskEvent, new_id, project_key
from shared.store.sqlite import SqliteStore
from shared.worker.services.hooks import HookService

GONE = new_id()  # a task that is there no more


@pytest.fixture
async def hooks(store: SqliteStore) -> list[Hook]:
    """Two projects, with a hook for each of their events."""
    await store.insert(Project(slug="garden", name="Garden"))
    made = []
    for project in ("shop", "garden"):
        for kind in ("task_created", "project.paused"):
            slug = f"{project}-{kind}"
            row = Hook(
                slug=slug, name=slug, project_id=project_key(project), prompt_template="Look.",
                trigger={"type": "event", "event_type": kind}, cooldown_seconds=0,
            )  # fmt: skip
            await store.insert(row)
            made.append(row)
    return made


async def launched(
    store: SqliteStore, hooks: list[Hook], event: TaskEvent
) -> list[tuple[str, dict[str, Any]]]:
    service = HookService.__new__(HookService)
    service._store, service._later = store, deque()
    await service._event(hooks, event)
    names = {hook.id: hook.slug for hook in hooks}
    return [(names[run.hook_id], run.event) for run in await store.select(HookRun)]


def event(task: Any, project: str | None, what: str, to: str | None = None, /, **detail: Any) -> TaskEvent:
    key = project_key(project) if project else None
    state = cast(Any, to)
    return TaskEvent(task_id=task, project_id=key, event=what, to_status=state, actor="ann", detail=detail)


async def test_an_event_of_a_task_that_is_gone_launches_hooks_of_its_project_alone(
    store: SqliteStore, hooks: list[Hook]
) -> None:
    [(name, told)] = await launched(store, hooks, event(GONE, "garden", "created", "READY"))
    assert (name, told["task_id"]) == ("garden-task_created", str(GONE))


async def test_an_event_that_names_no_project_belongs_to_its_tasks_and_without_one_to_none(
    store: SqliteStore, hooks: list[Hook]
) -> None:
    assert await launched(store, hooks, event(GONE, None, "created", "READY")) == []
    task = Task(slug="calm-otter", title="x", project_id=project_key("garden"))
    await store.insert(task)
    [(name, told)] = await launched(store, hooks, event(task.id, None, "created", "READY"))
    assert (name, told["task_id"]) == ("garden-task_created", "calm-otter")


async def test_what_happened_before_a_task_went_elsewhere_is_its_old_projects(
    store: SqliteStore, hooks: list[Hook]
) -> None:
    task = Task(slug="calm-otter", title="x", project_id=project_key("garden"))
    await store.insert(task)
    [(name, _)] = await launched(store, hooks, event(task.id, "shop", "created", "READY"))
    assert name == "shop-task_created"


async def test_a_change_of_a_project_launches_that_projects_hooks(
    store: SqliteStore, hooks: list[Hook]
) -> None:
    paused = event(project_key("garden"), "garden", "project_paused", project="garden", name="Garden")
    assert triggers.names(paused) == ("project.paused",)
    [(name, told)] = await launched(store, hooks, paused)
    assert name == "garden-project.paused"
    assert (told["type"], told["project"], told["actor"]) == ("project.paused", "garden", "ann")
