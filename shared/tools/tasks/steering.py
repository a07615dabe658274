"""Category steering: pause a task and let it go on, and say what a day may cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.store.records import Task, now
from shared.tasks import budgets, states
from shared.tools import lookup
from shared.tools.context import Context
from shared.tools.detail import dollars
from shared.tools.registry import Category, Result

category = Category("steering", "Pause and resume tasks, and set what a day may cost")

RUNNING = ("IN_PROGRESS", "WAITING_INPUT")


def _task(arguments: dict[str, Any]) -> str:
    return str(arguments.get("task_id") or "")


def _day(arguments: dict[str, Any]) -> str:
    return f"day {dollars(arguments.get('dollars'))}"


def _key(here: Context, task: Task) -> str:
    return here.step_id or f"{task.slug}:{task.version}"


@category.tool(effect="idempotent", detail=_task, touches=touching("records"))
async def pause_task(
    here: Context, task_id: str, hours: Annotated[float, Field(gt=0, le=24 * 366)] = 24.0
) -> Result:
    """Pause a task; what was made is kept on its branch. It goes on with resume_task, or after so many hours."""
    task = await lookup.task(here.store, task_id)
    until = now() + timedelta(hours=hours)
    result: Result = {"paused": task.slug, "title": task.title}
    if task.status == "PAUSED":
        if task.resume_at is None or abs(task.resume_at - until) > timedelta(minutes=1):
            task = await lookup.change(here.store, task, resume_at=until)
        return result | {"resumes": _stamp(task)}
    if task.status not in ("READY", "ASSIGNED", "FAILED", *RUNNING):
        raise ToolError(
            f"the task {task_id} cannot be paused", f"it is {task.status}", "get_task shows what it does"
        )
    if task.status in RUNNING:
        # Its worker writes the state itself, with what it made until then: that it is a pause, the row says.
        task = await lookup.change(here.store, task, resume_at=until)
    how = "gone"
    # What failed waits for its next try: its request has ended.
    if here.cluster is not None and task.assignee and task.request_id and task.status != "FAILED":
        how = await here.cluster.stop(task.assignee, task.request_id)
    if how == "running":
        return result | {"resumes": until.isoformat(), "was": "running"}
    moved = await states.move(
        here.store, task.id, "paused", here.agent, _key(here, task), resume_at=until, request_id=None
    )
    return result | {"resumes": _stamp(moved or task), "was": "waiting"}


@category.tool(effect="idempotent", detail=_task, touches=touching("records"))
async def resume_task(here: Context, task_id: str) -> Result:
    """Let a paused task go on: it is READY again, and goes on with what is on its branch."""
    task = await lookup.task(here.store, task_id)
    moved = await states.move(here.store, task.id, "resumed", here.agent, _key(here, task))
    result: Result = {"resumed": task.slug, "title": task.title, "status": (moved or task).status}
    if task.question.startswith("the budget"):
        result["warning"] = (
            f"it was paused because {task.question} is spent: it stops there again unless raised"
        )
    return result


def _stamp(task: Task) -> str | None:
    return task.resume_at.isoformat() if task.resume_at else None


@category.tool(
    effect="idempotent",
    detail=_day,
    touches=touching("money"),
)
async def set_day_budget(
    here: Context, dollars: Annotated[float, Field(ge=0, le=1_000_000)] | None
) -> Result:
    """Set what all model calls of one day (UTC) may cost, in dollars; null goes back to the setting BUDGET_DAY."""
    await lookup.keep_setting(here.store, budgets.SCOPE, budgets.DAY, {"dollars": dollars})
    result: Result = {"budget_day": dollars}
    return result | ({"note": "the setting BUDGET_DAY holds again"} if dollars is None else {})
