"""Tools of category system: carry tasks through their states, by the rules of the state machine."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.store.records import Task, TaskDependency, TaskEvent, derived
from shared.store.row import now
from shared.tasks import states
from shared.tools import lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.detail import words
from shared.tools.registry import Result
from shared.tools.tasks import plans
from shared.tools.tasks.core import StatusOverride

category = tier("system")

BUSY = ("ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "VERIFYING")
Feedback = Annotated[str, Field(min_length=1, max_length=50_000)]


def _task(arguments: dict[str, Any]) -> str:
    return str(arguments.get("task_id") or "")


def _status(arguments: dict[str, Any]) -> str:
    return words(_task(arguments), arguments.get("status"))


def _key(here: Context, task: Task) -> str:
    """Names a transition: the same on a replay, another one for the next call."""
    return here.step_id or f"{task.slug}:{task.version}"


async def _move(here: Context, task: Task, event: str, **changes: Any) -> Task:
    return await states.move(here.store, task.id, event, here.agent, _key(here, task), **changes) or task


@category.tool(effect="idempotent", detail=_task, touches=touching("records"))
async def stop_task(here: Context, task_id: str) -> Result:
    """Stop a task that waits for its worker or its next try, or is in progress. What was made is kept on its branch."""
    task = await lookup.task(here.store, task_id)
    if task.status == "BLOCKED" and here.intended is not None:
        return dict(here.intended["told"])  # stopped by this very call, before a crash
    if task.status in ("COMPLETED", "BLOCKED"):
        raise ToolError(f"the task {task_id} does not run", f"it is {task.status}")
    result = {"stopped": task_id, "was": "running" if task.status in BUSY[1:] else "waiting"}
    await here.intend({"told": result})
    how = "gone"
    # What failed waits for its next try: its request has ended.
    if here.cluster is not None and task.assignee and task.request_id and task.status != "FAILED":
        how = await here.cluster.stop(task.assignee, task.request_id)
    result = {"stopped": task_id, "was": "running" if how == "running" else "waiting"}
    if how != "running":  # a worker that runs it writes the state itself, with what it made until then
        await here.intend({"told": result})
        await _move(here, task, "stopped")
    return result


@category.tool(effect="idempotent", detail=_task, touches=touching("records"))
async def restart_task(here: Context, task_id: str, repo_id: str | None = None) -> Result:
    """Reset a completed, failed, or blocked task back to READY so it gets picked up by an agent again.

    `repo_id` says in which repository, where that was not clear.
    """
    task = await lookup.task(here.store, task_id)
    where = await _elsewhere(here, task, repo_id) if repo_id else {}
    await _move(here, task, "restarted", **_fresh(), **where)
    return {"restarted": task.slug, "title": task.title, "previous_status": task.status}


async def _elsewhere(here: Context, task: Task, repo_id: str) -> dict[str, Any]:
    """What changes when a task is to be done in this repository: what it has made cannot go with it."""
    slug = (await lookup.projects(here.store)).get(task.project_id, "")
    repo = await lookup.repo(here, repo_id, slug)
    if repo.id == task.repo_id:
        return {}
    if task.branch:
        raise ToolError(
            f"the task {task.slug} cannot go to another repository",
            f"what it made is on {task.branch}",
            "throw that away with discard_task first",
        )
    return {"repo_id": repo.id, "base_commit": None}


def _fresh() -> dict[str, Any]:
    """What a task forgets when it begins anew; its agent goes on with its branch."""
    return {
        "attempts": 0,
        "owner": None,
        "request_id": None,
        "lease_until": None,
        "error": "",
        "archived": False,
    }


@category.tool(effect="idempotent", detail=_task, touches=touching("records"))
async def reopen_with_feedback(here: Context, task_id: str, feedback: Feedback) -> Result:
    """Reopen a completed or failed task with feedback, which its next worker reads."""
    task = await lookup.task(here.store, task_id)
    event = "rejected" if task.status == "AWAITING_APPROVAL" else "restarted"
    origin = here.origin.over(task.origin).kept()
    await _move(here, task, event, **_fresh(), feedback=_added(task, feedback), origin=origin)
    return {"reopened": task.slug, "title": task.title, "previous_status": task.status}


def _added(task: Task, feedback: str) -> str:
    return f"{task.feedback}\n\n{feedback}".strip()


@category.tool(effect="idempotent", detail=_task, touches=touching("loss"))
async def delete_task(here: Context, task_id: str) -> Result:
    """Delete a task, with its dependencies. One that is in progress has to be stopped first."""
    task = await lookup.first(here.store, Task, slug=task_id)
    if task is None and here.intended is not None:  # deleted by this very call, before a crash
        return dict(here.intended["told"]) | await _freed(here, here.intended["waiting"])
    task = task or await lookup.task(here.store, task_id)
    if task.status in BUSY:
        raise ToolError(
            f"the task {task_id} cannot be deleted", f"it is {task.status}", "stop it first with stop_task"
        )
    edges = await here.store.select(TaskDependency, {"depends_on_id": task.id})
    waiting = {str(edge.task_id): f"{_key(here, task)}:{edge.task_id}" for edge in edges}
    result = {"deleted": task.slug, "title": task.title}
    await here.intend({"told": result, "waiting": waiting})
    if not await here.store.delete(Task, {"id": task.id, "version": task.version}):
        raise ToolError(f"the task {task_id} was changed meanwhile", "", "look at it, then try again")
    return result | await _freed(here, waiting)


async def _freed(here: Context, waiting: dict[str, str]) -> Result:
    """Make ready who waited for a deleted task alone; `waiting` names the transition of each."""
    ready = []
    for id, key in waiting.items():
        found = await lookup.first(here.store, Task, id=UUID(id))
        if found is None or found.status not in ("DEFINED", "READY"):
            continue
        made = TaskEvent, {"id": derived("task-event", key, "dependencies_met")}
        if found.status == "DEFINED" and not await states.waits_for(here.store, found):
            await states.free(here.store, found, here.agent, key)
            ready.append(found.slug)
        elif await here.store.select(*made, limit=1):
            ready.append(found.slug)
    return {"unblocked": ready} if ready else {}


@category.tool(
    effect="idempotent",
    detail=lambda arguments: str(arguments.get("task_id") or arguments.get("project_id") or ""),
    also=("archive_task",),
    touches=touching("records"),
)
async def archive_tasks(
    here: Context, project_id: str | None = None, include_failed: bool = False, task_id: str | None = None
) -> Result:
    """Archive completed tasks, to clear them from the lists; with a task_id that one alone."""
    done = {"COMPLETED", "FAILED"} if include_failed or task_id else {"COMPLETED"}
    if task_id:
        task = await lookup.task(here.store, task_id)
        if task.status not in {*done, "BLOCKED"}:
            raise ToolError(
                f"the task {task_id} is not archived", f"it is {task.status}", "stop it first with stop_task"
            )
        await lookup.change(here.store, task, archived=True)
        return {"archived": [task.slug], "count": 1}
    where: dict[str, Any] = {"archived": False, "status": ("in", sorted(done))}
    if project_id:
        where["project_id"] = (await lookup.project(here.store, project_id)).id
    moved = await here.store.update(Task, {"archived": True}, where)
    return {"archived": [task.slug for task in moved[:200]], "count": len(moved)}


@category.tool(effect="pure", touches=touching("records"))
async def list_archived(
    here: Context, project_id: str | None = None, limit: Annotated[int, Field(ge=1, le=200)] = 50
) -> Result:
    """List archived tasks, the newest first."""
    where: dict[str, Any] = {"archived": True}
    if project_id:
        where["project_id"] = (await lookup.project(here.store, project_id)).id
    rows = await here.store.select(Task, where, order=[("updated_at", "desc")], limit=limit)
    names = await lookup.projects(here.store)
    return {
        "tasks": [
            {
                "id": task.slug,
                "project_id": names.get(task.project_id, ""),
                "title": task.title,
                "status": task.status,
                "archived_at": task.updated_at.isoformat(),
            }
            for task in rows
        ],
        "total": await here.store.count(Task, where),
    }


@category.tool(effect="idempotent", detail=_task, touches=touching("records"))
async def restore_task(here: Context, task_id: str) -> Result:
    """Restore an archived task back into the active task list."""
    task = await lookup.task(here.store, task_id)
    if not task.archived:
        raise ToolError(f"the task {task_id} is not archived", f"it is {task.status}", "see list_archived")
    await lookup.change(here.store, task, archived=False)
    return {"restored": task.slug, "title": task.title, "status": task.status}


@category.tool(effect="idempotent", detail=_task, touches=touching("approval"))
async def approve_task(here: Context, task_id: str) -> Result:
    """Manually approve and complete a task that is AWAITING_APPROVAL."""
    task = await lookup.task(here.store, task_id)
    lookup.need_word(here, task)
    await _move(here, task, "approved", ended_at=now())
    return {"approved": task.slug, "title": task.title} | await _unblocked(here, task)


@category.tool(effect="idempotent", detail=_task, touches=touching("approval"))
async def approve_plan(here: Context, task_id: str) -> Result:
    """Approve the plan of a task that is AWAITING_PLAN_APPROVAL: the plan's tasks are written and begin.

    A task that waits without a plan becomes READY.
    """
    task = await lookup.task(here.store, task_id)
    lookup.need_word(here, task)
    if task.plan.get("tasks"):
        open_now = task.status == "AWAITING_PLAN_APPROVAL"
        written = await plans.approved(here, task) if open_now else []
        task = await _move(here, task, "plan_written", ended_at=now())
        return {"approved": task.slug, "title": task.title, "status": task.status, "written": written}
    task = await _move(here, task, "plan_approved")
    if task.status == "READY" and await states.waits_for(here.store, task):
        task = await _move(here, task, "dependency_added")
    return {"approved": task.slug, "title": task.title, "status": task.status}


@category.tool(effect="idempotent", detail=_task, touches=touching("approval"))
async def reject_plan(here: Context, task_id: str, feedback: Feedback) -> Result:
    """Reject the plan of a task that is AWAITING_PLAN_APPROVAL, with feedback for whoever plans it anew."""
    task = await lookup.task(here.store, task_id)
    origin = here.origin.over(task.origin).kept()
    task = await _move(here, task, "plan_rejected", feedback=_added(task, feedback), origin=origin)
    return {"rejected": task.slug, "title": task.title, "status": task.status}


@category.tool(effect="idempotent", detail=_task, touches=touching("approval", "loss"))
async def delete_plan(here: Context, task_id: str) -> Result:
    """Delete the plan of a task that is AWAITING_PLAN_APPROVAL; the task counts as completed."""
    task = await lookup.task(here.store, task_id)
    lookup.need_word(here, task)
    task = await _move(here, task, "plan_deleted", plan={}, ended_at=now())
    return {"deleted_plan": task.slug, "title": task.title, "status": task.status}


@category.tool(effect="idempotent", detail=_task, touches=touching("approval"))
async def skip_task(here: Context, task_id: str) -> Result:
    """Skip a BLOCKED or FAILED task to unblock its dependency chain."""
    task = await lookup.task(here.store, task_id)
    await _move(here, task, "skipped", ended_at=now())
    freed = await _unblocked(here, task)
    return {"skipped": task.slug, "unblocked": [], "unblocked_count": 0} | freed


async def _unblocked(here: Context, task: Task) -> Result:
    """The tasks that waited for this one and can begin now."""
    found = []
    for edge in await here.store.select(TaskDependency, {"depends_on_id": task.id}):
        other = await lookup.first(here.store, Task, id=edge.task_id)
        if other and other.status == "READY":
            found.append(other.slug)
    return {"unblocked": found, "unblocked_count": len(found)} if found else {}


@category.tool(effect="idempotent", detail=_status, older=True, touches=touching("approval"))
async def set_task_status(here: Context, task_id: str, status: StatusOverride) -> Result:
    """Manually override the status of a task, bypassing its rules. It is audited."""
    task = await lookup.task(here.store, task_id)
    if task.status != status:
        lookup.need_word(here, task)
        await states.override(here.store, task, status, here.agent, here.user_id, _key(here, task))
    return {"task_id": task.slug, "old_status": task.status, "new_status": status, "title": task.title}
