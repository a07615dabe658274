"""The named queries of `db_query` steps. There are no others: a hook never brings a query of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from shared.errors import UsageError
from shared.store.base import Store
from shared.store.records import Task, TaskEvent, TokenUsage
from shared.store.row import now

MOST = 50
HookQuery = Callable[[Store, UUID], Awaitable[list[dict[str, Any]]]]


def _tasks(*states: str) -> HookQuery:
    async def run(store: Store, project: UUID) -> list[dict[str, Any]]:
        where = {"project_id": project, "status": ("in", list(states)), "archived": False}
        rows = await store.select(Task, where, order=[("updated_at", "desc")], limit=MOST)
        return [
            {
                "task_id": task.slug,
                "title": task.title,
                "status": task.status,
                "agent": task.assignee,
                "error": task.error,
                "since": task.updated_at.isoformat(),
            }
            for task in rows
        ]

    return run


async def _events(store: Store, project: UUID) -> list[dict[str, Any]]:
    where = {"project_id": project, "created_at": ("ge", now() - timedelta(days=1))}
    rows = await store.select(TaskEvent, where, order=[("created_at", "desc")], limit=MOST)
    return [
        {"at": event.created_at.isoformat(), "event": event.event, "to": event.to_status, "by": event.actor}
        for event in rows
    ]


async def _usage(store: Store, project: UUID) -> list[dict[str, Any]]:
    where = {"project_id": project, "created_at": ("ge", now() - timedelta(days=1))}
    agents: dict[str, dict[str, Any]] = {}
    for row in await store.select(TokenUsage, where, limit=10_000):
        told = agents.setdefault(row.agent, {"agent": row.agent, "tokens": 0, "cost": 0.0})
        told["tokens"] += row.input + row.output
        told["cost"] = round(told["cost"] + row.cost, 6)
    return list(agents.values())


QUERIES: dict[str, HookQuery] = {
    "failed_tasks": _tasks("FAILED"),
    "blocked_tasks": _tasks("BLOCKED"),
    "ready_tasks": _tasks("READY"),
    "running_tasks": _tasks("ASSIGNED", "IN_PROGRESS"),
    "waiting_tasks": _tasks("WAITING_INPUT", "PAUSED", "AWAITING_APPROVAL", "AWAITING_PLAN_APPROVAL"),
    "completed_tasks": _tasks("COMPLETED"),
    "events_today": _events,
    "usage_today": _usage,
}


async def run(store: Store, name: str, project: UUID) -> list[dict[str, Any]]:
    """The rows of a named query, of one project; UsageError for a name that there is not."""
    if name not in QUERIES:
        raise UsageError(f"there is no query called {name!r}", f"there are: {', '.join(QUERIES)}")
    return await QUERIES[name](store, project)
