"""The states of a task, and the one way between them: a conditional write, and a row that tells of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from shared.errors import Conflict, ToolError
from shared.store.base import Store
from shared.store.records import Task, TaskEvent
from shared.store.row import derived, now

ANY = "*"

# event -> from -> to
FLOW: dict[str, dict[str, str]] = {
    "dependencies_met": {"DEFINED": "READY"},
    "plan_approved": {"AWAITING_PLAN_APPROVAL": "READY"},
    "plan_rejected": {"AWAITING_PLAN_APPROVAL": "READY"},
    "plan_deleted": {"AWAITING_PLAN_APPROVAL": "COMPLETED"},
    "assigned": {"READY": "ASSIGNED"},
    "started": {"ASSIGNED": "IN_PROGRESS"},
    "lost": {"ASSIGNED": "READY", "IN_PROGRESS": "READY"},
    "assignment_timeout": {"ASSIGNED": "BLOCKED"},
    "completed": {"IN_PROGRESS": "VERIFYING"},
    "plan_made": {"IN_PROGRESS": "AWAITING_PLAN_APPROVAL"},
    "failed": {"IN_PROGRESS": "FAILED"},
    "stopped": {"ASSIGNED": "BLOCKED", "IN_PROGRESS": "BLOCKED", "READY": "BLOCKED"},
    "timeout": {"IN_PROGRESS": "BLOCKED"},
    "budget_spent": {"IN_PROGRESS": "PAUSED"},
    "question": {"IN_PROGRESS": "WAITING_INPUT"},
    "answered": {"WAITING_INPUT": "IN_PROGRESS"},
    "unanswered": {"WAITING_INPUT": "PAUSED"},
    "resumed": {"PAUSED": "READY"},
    "passed": {"VERIFYING": "COMPLETED"},
    "checks_failed": {"VERIFYING": "FAILED"},
    "needs_review": {"VERIFYING": "AWAITING_APPROVAL"},
    "approved": {"AWAITING_APPROVAL": "COMPLETED"},
    "rejected": {"AWAITING_APPROVAL": "READY"},
    "closed": {"AWAITING_APPROVAL": "BLOCKED"},
    "retried": {"FAILED": "READY"},
    "retries_spent": {"FAILED": "BLOCKED", "IN_PROGRESS": "BLOCKED"},
    "skipped": {"FAILED": "COMPLETED", "BLOCKED": "COMPLETED"},
    "restarted": dict.fromkeys(("COMPLETED", "FAILED", "BLOCKED", "PAUSED", "ASSIGNED"), "READY"),
}
_TRIES = 5


async def move(
    store: Store, task_id: UUID, event: str, actor: str, key: str, epoch: int | None = None, **changes: Any
) -> Task | None:
    """Carry a task over by an event; the task as it now is, or None where it does not exist.

    `key` names this very transition: one that is in the history already is not made again. ToolError where
    the state does not allow it, or where a later epoch owns the task.
    """
    for _ in range(_TRIES):
        found = await store.select(Task, {"id": task_id}, limit=1)
        if not found:
            return None
        task = found[0]
        if await store.select(TaskEvent, {"id": derived("task-event", key, event)}, limit=1):
            return task
        to = FLOW[event].get(task.status)
        if to is None:
            raise ToolError(
                f"the task {task.slug} cannot be {event.replace('_', ' ')}", f"it is {task.status}"
            )
        if epoch is not None and task.epoch > epoch:
            raise ToolError(f"the task {task.slug} belongs to another worker now", f"epoch {task.epoch}")
        values = {**changes, "status": to, "version": task.version + 1, "updated_at": now()}
        if epoch is not None:
            values["epoch"] = epoch
        moved = await store.update(Task, values, {"id": task.id, "version": task.version})
        if moved:
            await store.upsert([_history(task, event, to, actor, key, epoch or task.epoch)])
            return moved[0]
    raise Conflict(f"the task {task_id} changes too often", "others write it at the same moment", "try again")


def _history(task: Task, event: str, to: str, actor: str, key: str, epoch: int) -> TaskEvent:
    return TaskEvent(
        id=derived("task-event", key, event),
        task_id=task.id,
        project_id=task.project_id,
        event=event,
        from_status=task.status,
        to_status=to,
        actor=actor,
        epoch=epoch,
    )
