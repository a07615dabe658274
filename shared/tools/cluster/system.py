"""Tools of category system: how things stand, what happened, what it cost, and the cluster's own switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from pydantic import Field

from shared.errors import ToolError
from shared.guard.permissions.touching import chosen, touching
from shared.store.records import Agent, Project, Task, TaskEvent, TaskStatus, TokenUsage
from shared.tools import lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.registry import Result
from shared.tools.tasks import format

category = tier("system")

SHOWN = 50  # tasks of one kind in an overview
COUNTED = 50_000  # rows of usage that one call adds up
SCOPE = "orchestrator"  # the setting that the scheduler reads: {paused: bool}
RUNNING = ("ASSIGNED", "IN_PROGRESS")


@category.tool(effect="pure", touches=touching("records"))
async def get_status(here: Context) -> Result:
    """Get a high-level overview of the system: projects, agents, tasks counts."""
    names = await lookup.projects(here.store)
    counts = {
        status: await here.store.count(Task, {"status": status, "archived": False})
        for status in get_args(TaskStatus)
    }
    return {
        "projects": len(names),
        "agents": await _agents(here),
        "tasks": {
            "total": sum(counts.values()),
            "by_status": {status: count for status, count in counts.items() if count},
            "in_progress": await _tasks(here, RUNNING, names),
            "ready_to_work": await _tasks(here, ("READY",), names),
        },
        "orchestrator_paused": await _paused(here),
    }


async def _tasks(here: Context, states: tuple[str, ...], names: dict[UUID, str]) -> list[dict[str, Any]]:
    where = {"status": ("in", list(states)), "archived": False}
    rows = await here.store.select(Task, where, order=[("priority", "asc")], limit=SHOWN)
    return [format.line(task, names.get(task.project_id, "")) for task in rows]


async def _agents(here: Context) -> list[dict[str, Any]]:
    """Who is here by presence where there is a cluster, else who was registered."""
    if here.cluster is not None:
        known = [await here.cluster.status(name) for name in sorted(await here.cluster.roster())]
        return [
            {"name": told["agent"], "state": told["status"], "working_on": told.get("current") or []}
            for told in known
        ]
    rows = await here.store.select(Agent, order=[("name", "asc")])
    return [{"name": row.name, "state": row.state} for row in rows]


@category.tool(effect="pure", touches=touching("records"))
async def get_recent_events(here: Context, limit: Annotated[int, Field(ge=1, le=200)] = 10) -> Result:
    """Get recent system events (task completions, failures, etc.), the newest first."""
    rows = await here.store.select(TaskEvent, order=[("created_at", "desc")], limit=limit)
    tasks = {id: await lookup.first(here.store, Task, id=id) for id in {event.task_id for event in rows}}
    names = await lookup.projects(here.store)
    return {
        "events": [
            {
                "at": event.created_at.isoformat(),
                "event": event.event,
                "task_id": task.slug if (task := tasks[event.task_id]) else _gone(event),
                "title": task.title if task else None,
                "project_id": names.get(event.project_id, "") if event.project_id else "",
                "from": event.from_status,
                "to": event.to_status,
                "actor": event.actor,
            }
            for event in rows
        ]
    }


def _gone(event: TaskEvent) -> str | None:
    """The key of a task that is no more; None for an event of a project."""
    return None if event.task_id == event.project_id else str(event.task_id)


@category.tool(effect="pure", touches=touching("records"))
async def get_token_usage(here: Context, project_id: str | None = None, task_id: str | None = None) -> Result:
    """Get token usage breakdown by project or task: a task's by agent, a project's by task and agent."""
    if task_id:
        task = await lookup.task(here.store, task_id)
        return await _usage(here, {"task_id": task.id}, lambda row: {"agent": row.agent})
    tasks = {task.id: task for task in await here.store.select(Task)}
    if project_id:
        owner = (await lookup.project(here.store, project_id)).id
        ours = {id: task.slug for id, task in tasks.items() if task.project_id == owner}
        return await _usage(
            here,
            {},
            lambda row: {"task_id": ours.get(row.task_id) if row.task_id else None, "agent": row.agent},
            lambda row: row.project_id == owner or row.task_id in ours,
        )
    names = await lookup.projects(here.store)

    def project(row: TokenUsage) -> dict[str, Any]:
        task = tasks.get(row.task_id) if row.task_id else None
        owner = row.project_id or (task.project_id if task else None)
        return {"project_id": names.get(owner) if owner else None}

    return await _usage(here, {}, project)


async def _usage(here: Context, where: dict[str, Any], group: Any, ours: Any = lambda _row: True) -> Result:
    rows = await here.store.select(TokenUsage, where, order=[("created_at", "desc")], limit=COUNTED)
    groups: dict[tuple[Any, ...], list[TokenUsage]] = {}
    for row in filter(ours, rows):
        groups.setdefault(tuple(group(row).items()), []).append(row)
    breakdown = [dict(key) | _sum(group) for key, group in groups.items()]
    breakdown.sort(key=lambda part: -part["tokens"])
    result: Result = {
        "breakdown": breakdown[:500],
        "total": _sum(row for group in groups.values() for row in group),
    }
    return result | ({"warning": f"only the newest {COUNTED} calls count"} if len(rows) == COUNTED else {})


def _sum(found: Iterable[TokenUsage]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    cost = 0.0
    for row in found:
        total.update(input=row.input, output=row.output, cached=row.cache_read, calls=1)
        cost += row.cost
    return {
        "tokens": total["input"] + total["output"] + total["cached"],
        "input": total["input"],
        "output": total["output"],
        "cache_read": total["cached"],
        "calls": total["calls"],
        "cost": round(cost, 6),
    }


async def _paused(here: Context) -> bool:
    return bool((await lookup.setting(here.store, SCOPE, "state")).get("paused"))


@category.tool(
    effect="idempotent",
    detail=lambda arguments: str(arguments.get("action", "")),
    touches=touching("records", action=chosen(pause="agent", resume="agent")),
)
async def orchestrator_control(here: Context, action: Literal["pause", "resume", "status"]) -> Result:
    """Pause, resume, or check the status of the orchestrator (task scheduler). What runs goes on."""
    if action != "status":
        value = {"paused": action == "pause", "by": here.user_id or here.agent}
        await lookup.keep_setting(here.store, SCOPE, "state", value)
    running = await here.store.count(Task, {"status": ("in", list(RUNNING)), "archived": False})
    paused = await _paused(here)
    waiting = await here.store.count(Project, {"status": "PAUSED"})
    text = "no task is begun by itself while it is paused" if paused else "tasks that are ready may begin"
    return {
        "status": "paused" if paused else "running",
        "running_tasks": running,
        "paused_projects": waiting,
        "message": text,
    }


@category.tool(
    effect="once", detail=lambda arguments: str(arguments.get("reason", ""))[:200], touches=touching("agent")
)
async def restart_daemon(
    here: Context, reason: Annotated[str, Field(max_length=500)] = "no reason was given"
) -> Result:
    """Restart the cluster's processes, drained: each hands over what it does and is started again."""
    if here.cluster is None:
        raise ToolError(
            "the cluster cannot be restarted from here", "no cluster is at hand", "promptdock down"
        )
    heard = await here.cluster.restart(reason)
    return {
        "status": "restarting",
        "heard_by": heard,
        "message": "every worker hands over and ends; whoever supervises it starts it again",
    }
