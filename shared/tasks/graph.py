"""Which task waits for which: a graph without cycles, checked on every new edge."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from shared.errors import Conflict, ToolError
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Task, TaskDependency
from shared.store.row import derived
from shared.tasks import states

_FAR = 10_000  # tasks that are looked through for a cycle


async def connect(store: Store, task: Task, needs: Task, actor: str, key: str) -> Task:
    """Make `task` wait for `needs`; the task as it then is. ToolError for a cycle, or where it runs already.

    The edge is written and then looked at again: of two that would close a circle from both sides at the
    same moment at least one sees it, and takes itself back.
    """
    if task.id == needs.id:
        raise ToolError(f"{task.slug} cannot wait for itself", "", "name another task")
    if task.status not in ("DEFINED", "READY", "AWAITING_PLAN_APPROVAL"):
        raise ToolError(
            f"{task.slug} cannot wait for another task now", f"it is {task.status}", "restart it first"
        )
    if await _reaches(store, needs.id, task.id):
        raise _circle(task, needs)
    edge = TaskDependency(
        id=derived("edge", str(task.id), str(needs.id)), task_id=task.id, depends_on_id=needs.id
    )
    try:
        await store.insert(edge)
    except Conflict:
        return task  # it is there already
    if await _reaches(store, needs.id, task.id):
        await store.delete(TaskDependency, {"id": edge.id})
        raise _circle(task, needs)
    if task.status == "READY" and needs.status != "COMPLETED":
        return await states.move(store, task.id, "dependency_added", actor, key) or task
    return task


def _circle(task: Task, needs: Task) -> ToolError:
    return ToolError(
        f"{task.slug} cannot wait for {needs.slug}",
        f"{needs.slug} waits for {task.slug} already, directly or through others: that would be a circle",
        "remove the other dependency first",
    )


async def disconnect(store: Store, task: Task, needs: Task, actor: str, key: str) -> Task:
    """Take an edge away; the task becomes ready if it waits for nothing more."""
    if not await store.delete(TaskDependency, {"task_id": task.id, "depends_on_id": needs.id}):
        raise ToolError(f"{task.slug} does not depend on {needs.slug}", "", "see get_task_dependencies")
    if task.status == "DEFINED" and not await states.waits_for(store, task):
        return await states.free(store, task, actor, key) or task
    return task


async def _reaches(store: Store, start: UUID, goal: UUID) -> bool:
    """Whether `start` waits for `goal`, also through others."""
    return goal in await closure(store, start, upstream=True)


async def closure(store: Store, start: UUID, *, upstream: bool) -> list[UUID]:
    """Every task that `start` waits for (upstream), or that waits for it, nearest first, without itself."""
    ours, theirs = ("task_id", "depends_on_id") if upstream else ("depends_on_id", "task_id")
    seen: dict[UUID, None] = {}
    level = [start]
    while level and len(seen) < _FAR:
        met: dict[UUID, None] = {}
        for part in _parts(level):
            for edge in await store.select(TaskDependency, {ours: ("in", part)}):
                met[getattr(edge, theirs)] = None
        level = [id for id in met if id not in seen]
        seen.update(dict.fromkeys(level))
    return list(seen)


async def tasks(store: Store, ids: Iterable[UUID]) -> list[Task]:
    """The rows of these tasks, in this order."""
    wanted = list(ids)
    found = {row.id: row for part in _parts(wanted) for row in await store.select(Task, {"id": ("in", part)})}
    return [found[id] for id in wanted if id in found]


def _parts(ids: list[UUID]) -> list[list[UUID]]:
    return [ids[at : at + IN_LIMIT] for at in range(0, len(ids), IN_LIMIT)]
