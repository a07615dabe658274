"""The one place that makes tasks: under names that are free, each with the line of history that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from shared.errors import Conflict, ToolError
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Row, Task, TaskDependency, TaskEvent
from shared.store.row import derived
from shared.tasks import slugs

_TRIES = 6
R = TypeVar("R", bound=Row)


async def create(
    store: Store, actor: str, tasks: Sequence[Task], needs: Sequence[TaskDependency] = ()
) -> list[Task]:
    """Write the tasks that are not there yet, and what waits for what, all or nothing; the tasks as they now are.

    Their ids follow from the call that makes them, so that a replay finds what it wrote; that is left alone, since
    it may be worked on by now.
    """
    ids = [task.id for task in tasks]
    for attempt in range(_TRIES):
        known = {row.id: row for row in await there(store, Task, ids)}
        fresh = [
            task.model_copy(update={"slug": slugs.slug(task.id, attempt)})
            for task in tasks
            if task.id not in known
        ]
        edges = {row.id for row in await there(store, TaskDependency, [row.id for row in needs])}
        missing: list[Row] = [*fresh, *(row for row in needs if row.id not in edges)]
        missing += [_created(row, actor) for row in fresh]
        try:
            if missing:
                await store.insert(missing[0], beside=missing[1:])
        except Conflict:
            continue  # a name is taken, or another process wrote meanwhile
        rows = known | {row.id: row for row in fresh}
        return [rows[id] for id in ids]
    raise ToolError("no free names were found for the tasks", "", "try again")


async def there(store: Store, kind: type[R], ids: Sequence[UUID]) -> list[R]:
    """The rows of these ids that are there."""
    parts = [list(ids[at : at + IN_LIMIT]) for at in range(0, len(ids), IN_LIMIT)]
    return [row for part in parts for row in await store.select(kind, {"id": ("in", part)})]


def _created(task: Task, actor: str) -> TaskEvent:
    """Hooks and the event stream hear of a new task by this row. One for each task."""
    return TaskEvent(
        id=derived("task-event", str(task.id), "created"),
        task_id=task.id,
        project_id=task.project_id,
        event="created",
        to_status=task.status,
        actor=actor,
    )
