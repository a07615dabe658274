"""The states of a task, and the one way between them: a conditional write, with the row that tells of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from shared.errors import Conflict, ToolError
from shared.store.base import Store
from shared.store.records import Audit, Task, TaskDependency, TaskEvent, TaskStatus
from shared.store.row import derived, now

ANY = "*"

# event -> from -> to
FLOW: dict[str, dict[str, str]] = {
    "dependencies_met": {"DEFINED": "READY"},
    "dependency_added": {"READY": "DEFINED"},
    "plan_approved": {"AWAITING_PLAN_APPROVAL": "READY"},
    "plan_written": {"AWAITING_PLAN_APPROVAL": "COMPLETED"},  # approved: its tasks go on
    "plan_rejected": {"AWAITING_PLAN_APPROVAL": "READY"},
    "plan_deleted": {"AWAITING_PLAN_APPROVAL": "COMPLETED"},
    "assigned": {"READY": "ASSIGNED"},
    "started": {"ASSIGNED": "IN_PROGRESS"},
    "lost": {"ASSIGNED": "READY", "IN_PROGRESS": "READY"},
    "assignment_timeout": {"ASSIGNED": "BLOCKED"},
    "completed": {"IN_PROGRESS": "VERIFYING"},
    "plan_made": {"IN_PROGRESS": "AWAITING_PLAN_APPROVAL"},
    "failed": {"IN_PROGRESS": "FAILED", "WAITING_INPUT": "FAILED"},
    "stopped": dict.fromkeys(("READY", "ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "FAILED"), "BLOCKED"),
    "timeout": {"IN_PROGRESS": "BLOCKED", "WAITING_INPUT": "BLOCKED"},
    "budget_spent": {"IN_PROGRESS": "PAUSED"},
    "paused": dict.fromkeys(("READY", "ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "FAILED"), "PAUSED"),
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
    "given_up": {"FAILED": "BLOCKED"},
    "retries_spent": {"FAILED": "BLOCKED", "IN_PROGRESS": "BLOCKED"},
    "skipped": {"FAILED": "COMPLETED", "BLOCKED": "COMPLETED"},
    "restarted": dict.fromkeys(("COMPLETED", "FAILED", "BLOCKED", "PAUSED", "ASSIGNED"), "READY"),
}
ENDED = ("COMPLETED", "FAILED", "BLOCKED")
REVIEW = "awaiting_approval"  # how work came out that is done and waits for a person's look
# How the work on a task came out -> the events by which it gets there.
OUTCOMES = {
    "completed": ["completed", "passed"],
    REVIEW: ["completed", "needs_review"],
    "unproved": ["completed", "checks_failed"],
    "failed": ["started", "failed"],  # what failed at its very beginning was begun, too
    "lasting": ["started", "failed", "given_up"],  # no other try would change it
    "unproved for good": ["completed", "checks_failed", "given_up"],
    "timeout": ["timeout"],
    "stopped": ["stopped"],
    "paused": ["unanswered"],
    "held": ["paused"],
    "spent": ["budget_spent"],
    "planned": ["plan_made"],
}
RESUME = timedelta(hours=1)  # a paused task that nobody gave a time goes on after this
_TRIES = 5
_TERM = 1 << 32  # turns of one assignment are numbered below this


def after(events: Sequence[str]) -> str:
    """The state to which events lead, whatever was before them."""
    [to] = set(FLOW[events[-1]].values())
    return to


def next_epoch(task: Task) -> int:
    """The epoch of a new assignment: it fences every turn of the assignments before, whoever ran them.

    A turn's own epoch counts on one agent's queue only, so that it says nothing to another agent's turns.
    """
    return (task.epoch // _TERM + 1) * _TERM


def turn_epoch(assignment: Any, turn: int) -> int:
    """The epoch of a turn within the assignment that its request names; the turn's own where it names none."""
    return turn + (assignment if isinstance(assignment, int) and assignment > 0 else 0)


def to_review(task: Task, verified: str) -> bool:
    """Whether a person is to look at its work, of which the receipt says `verified`, before it counts as completed."""
    unproved = task.verification == "auto_test" and verified != "verified"
    return task.requires_approval or task.verification == "human" or unproved


def _entering(task: Task, to: str) -> dict[str, Any]:
    """What holds of every task in a state, whoever brings it there."""
    if to == "READY":
        return {"owner": None, "request_id": None, "lease_until": None, "resume_at": None, "ended_at": None}
    if to == "PAUSED":
        return {"owner": None, "resume_at": now() + RESUME}
    if to == "IN_PROGRESS":
        return {"started_at": now(), "resume_at": None} if task.status == "ASSIGNED" else {}
    return {"ended_at": now(), "owner": None} if to in ENDED else {}


async def move(
    store: Store,
    task_id: UUID,
    event: str,
    actor: str,
    key: str,
    epoch: int | None = None,
    detail: dict[str, Any] | None = None,
    **changes: Any,
) -> Task | None:
    """Carry a task over by an event; the task as it now is, or None where it does not exist.

    `key` names this very transition: one that is in the history already is not made again. `detail` is what the
    history keeps beside it. ToolError where the state does not allow it, or where a later epoch owns the task.
    """
    for _ in range(_TRIES):
        rows = await store.select(Task, {"id": task_id}, limit=1)
        if not rows:
            return None
        task = rows[0]
        if await store.select(TaskEvent, {"id": derived("task-event", key, event)}, limit=1):
            await _settled(store, task, actor)
            return task
        to = FLOW[event].get(task.status)
        if to is None:
            raise ToolError(
                f"the task {task.slug} cannot be {event.replace('_', ' ')}", f"it is {task.status}"
            )
        if epoch is not None and task.epoch > epoch:
            raise ToolError(f"the task {task.slug} belongs to another worker now", f"epoch {task.epoch}")
        values = {**_entering(task, to), **changes}
        values |= {"status": to, "version": task.version + 1, "updated_at": now()}
        if epoch is not None:
            values["epoch"] = epoch
        history = _history(task, event, to, actor, key, epoch or task.epoch, detail)
        moved = await store.update(Task, values, {"id": task.id, "version": task.version}, beside=[history])
        if moved:
            await _settled(store, moved[0], actor)
            return moved[0]
    raise Conflict(f"the task {task_id} changes too often", "others write it at the same moment", "try again")


async def override(store: Store, task: Task, to: TaskStatus, actor: str, person: str, key: str) -> Task:
    """A person's word over the machine: any state, a new epoch, which fences whoever works on it, audited."""
    epoch = next_epoch(task)
    values = {**_entering(task, to), "status": to, "epoch": epoch, "version": task.version + 1}
    values |= {"owner": None, "lease_until": None}
    detail = {"task": task.slug, "from": task.status, "to": to}
    audit = Audit(
        id=derived("audit", key, "override"), agent=actor, action=f"tool:set_task_status:{task.slug}",
        decision="allow", person=person or None, task_id=task.id, detail=detail,
    )  # fmt: skip
    told = [_history(task, "override", to, actor, key, epoch), audit]
    moved = await store.update(Task, values, {"id": task.id, "version": task.version}, beside=told)
    if not moved:
        raise Conflict(f"the task {task.slug} was changed meanwhile", "", "look at it, then try again")
    await _settled(store, moved[0], actor)
    return moved[0]


async def _settled(store: Store, task: Task, actor: str) -> None:
    if task.status == "COMPLETED":
        await promote(store, task, actor)


async def promote(store: Store, task: Task, actor: str) -> list[Task]:
    """Make ready whoever waited for this completed task alone; those that are ready now."""
    ready = []
    for edge in await store.select(TaskDependency, {"depends_on_id": task.id}):
        rows = await store.select(Task, {"id": edge.task_id}, limit=1)
        if rows and rows[0].status == "DEFINED" and not await waits_for(store, rows[0]):
            # The version is in the key: a task may wait again later, for something else.
            key = f"promote:{rows[0].id}:{rows[0].version}"
            moved = await free(store, rows[0], actor, key)
            ready += [moved] if moved else []
    return ready


async def free(store: Store, task: Task, actor: str, key: str) -> Task | None:
    """Make a task ready that waits for nothing more; as it now is, or None where it does not exist.

    Several look at the same moment (who completed the last one, the scheduler, a tool): each but the first finds
    it done, and that is no error.
    """
    try:
        return await move(store, task.id, "dependencies_met", actor, key)
    except ToolError:
        rows = await store.select(Task, {"id": task.id}, limit=1)
        if rows and rows[0].status == "DEFINED":
            raise
        return rows[0] if rows else None


async def waits_for(store: Store, task: Task) -> list[Task]:
    """The tasks that this one depends on and that are not completed."""
    edges = await store.select(TaskDependency, {"task_id": task.id})
    found = [await store.select(Task, {"id": edge.depends_on_id}, limit=1) for edge in edges]
    return [rows[0] for rows in found if rows and rows[0].status != "COMPLETED"]


def _history(
    task: Task, event: str, to: str, actor: str, key: str, epoch: int, detail: dict[str, Any] | None = None
) -> TaskEvent:
    return TaskEvent(
        id=derived("task-event", key, event),
        task_id=task.id,
        project_id=task.project_id,
        event=event,
        from_status=task.status,
        to_status=to,
        actor=actor,
        epoch=epoch,
        detail=detail or {},
    )
