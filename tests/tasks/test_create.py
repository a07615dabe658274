"""Tasks are made in one place: under free names, with their history, once, all or none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from shared.errors import PromptDockError
from shared.store.base import Store
from shared.store.records import Project, Task, TaskDependency, TaskEvent
from shared.store.row import derived, new_id
from shared.store.sqlite import SqliteStore
from shared.tasks.create import create
from shared.tasks.slugs import slug


def _edge(task: Task, needs: Task) -> TaskDependency:
    return TaskDependency(
        id=derived("edge", str(task.id), str(needs.id)), task_id=task.id, depends_on_id=needs.id
    )


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    made = SqliteStore(tmp_path / "store.db")
    await made.open()
    yield made
    await made.close()


async def _project(store: Store) -> Project:
    project = Project(slug="shop", name="Shop")
    await store.insert(project)
    return project


async def test_a_task_made_twice_by_one_call_is_one_and_keeps_what_became_of_it(store: Store) -> None:
    task = Task(slug="", project_id=(await _project(store)).id, title="Do it", status="READY")
    [made] = await create(store, "chatter", [task])
    await store.update(Task, {"status": "IN_PROGRESS"}, {"id": made.id})
    [again] = await create(store, "chatter", [task])
    assert (again.slug, again.status) == (made.slug, "IN_PROGRESS")
    [event] = await store.select(TaskEvent, {"task_id": made.id})
    assert (event.event, event.to_status, event.actor) == ("created", "READY", "chatter")


async def test_a_name_that_is_taken_is_given_to_nobody_else(store: Store) -> None:
    project, id = await _project(store), new_id()
    await store.insert(Task(slug=slug(id), project_id=project.id, title="First"))
    [made] = await create(store, "chatter", [Task(id=id, slug="", project_id=project.id, title="Second")])
    assert made.slug.startswith(f"{slug(id)}-")


async def test_tasks_and_what_they_wait_for_are_written_all_or_none(store: Store) -> None:
    project = await _project(store)
    tasks = [Task(slug="", project_id=project.id, title=f"Step {n}") for n in range(3)]
    nobody = Task(slug="", project_id=project.id, title="never written")
    with pytest.raises(PromptDockError):
        await create(store, "planner", tasks, [_edge(tasks[0], nobody)])
    assert await store.count(Task, {}) == await store.count(TaskEvent, {}) == 0
    assert len(await create(store, "planner", tasks, [_edge(b, a) for a, b in pairwise(tasks)])) == 3
    assert await store.count(TaskDependency, {}) == 2


async def test_a_plan_in_which_much_waits_for_much_is_written(store: Store) -> None:
    project = await _project(store)
    tasks = [Task(slug="", project_id=project.id, title=f"Step {n}") for n in range(16)]
    edges = [_edge(tasks[b], tasks[a]) for b in range(16) for a in range(b)]
    assert len(edges) > 100, "more than the Store is asked for at once"
    await create(store, "planner", tasks, edges)
    await create(store, "planner", tasks, edges)
    assert await store.count(TaskDependency, {}) == len(edges)
