"""What became of a task's work since it was done last: merged, thrown away, or still waiting for a person."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from shared.store.base import Store
from shared.store.records import Task, TaskEvent

MERGED, UNMERGED, DISCARDED = "merged", "unmerged", "discarded"
_EVENTS = (MERGED, UNMERGED, DISCARDED)
TO_MERGE, TO_REVIEW = "to merge", "to review"  # what people read where the work waits for them
_MOST = 50  # tasks of one question to the Store


async def events(store: Store, tasks: Collection[UUID]) -> dict[UUID, TaskEvent]:
    """The last that was done with the work of each; what began again since has none, unless that changed nothing."""
    found: dict[UUID, TaskEvent] = {}
    before: dict[UUID, TaskEvent] = {}
    ids = list(tasks)
    for at in range(0, len(ids), _MOST):
        where = {"task_id": ("in", ids[at : at + _MOST]), "event": ("in", [*_EVENTS, "started", "completed"])}
        for event in await store.select(TaskEvent, where, order=[("created_at", "asc")]):
            id = event.task_id
            if event.event == DISCARDED and (stays := _merged(found.get(id)) or _merged(before.get(id))):
                found[id] = stays  # only what came after the merge can have been thrown away
            elif event.event in _EVENTS:
                found[id] = event
            elif event.event == "started" and id in found:
                before[id] = found.pop(id)
            elif event.detail.get("unchanged") and id in before:
                found[id] = before.pop(id)
    return found


def _merged(event: TaskEvent | None) -> TaskEvent | None:
    return event if event is not None and event.event == MERGED else None


async def was_merged(store: Store, task: UUID) -> bool:
    """Whether what earlier attempts made is in the default branch, whatever goes on now."""
    where = {"task_id": task, "event": ("in", [MERGED, UNMERGED])}
    last = await store.select(TaskEvent, where, order=[("created_at", "desc")], limit=1)
    return bool(last) and last[0].event == MERGED


async def fates(store: Store, tasks: Collection[UUID]) -> dict[UUID, str]:
    """merged or discarded, of each task of whose work that is so."""
    return {id: event.event for id, event in (await events(store, tasks)).items() if event.event != UNMERGED}


async def unmerged(store: Store, project: UUID) -> list[Task]:
    """The tasks of a project whose branches hold work that is neither merged nor thrown away."""
    made = [task for task in await store.select(Task, {"project_id": project}) if task.branch]
    became = await fates(store, [task.id for task in made])
    return sorted((task for task in made if task.id not in became), key=lambda task: task.slug)


def waiting(status: str, branch: str | None, error: str | None, became: str | None) -> str:
    """What a person has still to do with the work of a task; "" for nothing."""
    if status == "AWAITING_APPROVAL":
        return TO_REVIEW
    done = status == "COMPLETED" and branch and not error and became not in (MERGED, DISCARDED)
    return TO_MERGE if done else ""


async def nothing(store: Store, task: Task) -> str:
    """Why a task has no branch, in words."""
    became = (await fates(store, [task.id])).get(task.id)
    if became == DISCARDED:
        return "its work was thrown away"
    return "it changed nothing" if task.status == "COMPLETED" else f"it is {task.status}"
