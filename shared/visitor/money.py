"""Budgets that are set, with what was spent of them, as the Store has them; works with the cluster down."""

from __future__ import annotations

from typing import Any

from shared.store.base import Store
from shared.store.records import Hook, HookRun, Project, Task, TokenUsage
from shared.store.row import now
from shared.tasks import budgets as kept
from shared.visitor.visitor import Visitor

_OPEN = ("ne", "COMPLETED")
Card = dict[str, Any]


async def budgets(visitor: Visitor) -> list[Card]:
    """The day first, whether or not it has a budget; then projects, open tasks and hooks that have one."""
    store = await visitor.store()
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
    limit = await kept.day(store, visitor.settings.budget_day)
    found = [
        _card("day", midnight.date().isoformat(), limit, await _spent(store, created_at=("ge", midnight)))
    ]
    for project in await store.select(Project, {"budget": ("ne", None)}, order=[("slug", "asc")]):
        spent = await _spent(store, project_id=project.id)
        found.append(_card("project", project.slug, project.budget, spent))
    for task in await store.select(Task, {"budget": ("ne", None), "status": _OPEN}, order=[("slug", "asc")]):
        found.append(_card("task", task.slug, task.budget, await _spent(store, task_id=task.id)))
    for hook in await store.select(Hook, {"daily_cap": ("ne", None)}, order=[("slug", "asc")]):
        runs = await store.count(HookRun, {"hook_id": hook.id, "created_at": ("ge", midnight)})
        found.append(_card("hook", hook.slug, hook.daily_cap, runs) | {"unit": "runs a day"})
    return found


async def _spent(store: Store, **where: Any) -> float:
    return sum(row.cost for row in await store.select(TokenUsage, where))


def _card(scope: str, name: str, budget: float | None, spent: float) -> Card:
    return {"scope": scope, "name": name, "budget": budget, "spent": round(spent, 4), "unit": "dollars"}
