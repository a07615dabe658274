"""Budgets that are set, and what was spent on what, as the Store has them; works with the cluster down."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from shared.client.client import Client
from shared.client.types import Card
from shared.store.base import Store
from shared.store.records import Hook, HookRun, Project, Task, TokenUsage
from shared.store.row import now
from shared.tasks import budgets as kept

_COUNTS = ("calls", "input", "output", "cache_read", "cache_write", "cost")


async def budgets(client: Client) -> list[Card]:
    """The day first, whether or not it has a budget; then projects, tasks and hooks that have one.

    Tasks that were put away are not among them.
    """
    store = await client.store()
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
    limit = await kept.day(store, client.settings.budget_day)
    found = [
        _card("day", midnight.date().isoformat(), limit, await _spent(store, created_at=("ge", midnight)))
    ]
    for project in await store.select(Project, {"budget": ("ne", None)}, order=[("slug", "asc")]):
        spent = await _spent(store, project_id=project.id)
        found.append(_card("project", project.slug, project.budget, spent))
    for task in await store.select(
        Task, {"budget": ("ne", None), "archived": False}, order=[("slug", "asc")]
    ):
        found.append(_card("task", task.slug, task.budget, await _spent(store, task_id=task.id)))
    for hook in await store.select(Hook, {"daily_cap": ("ne", None)}, order=[("slug", "asc")]):
        runs = await store.count(HookRun, {"hook_id": hook.id, "created_at": ("ge", midnight)})
        found.append(_card("hook", hook.slug, hook.daily_cap, runs) | {"unit": "runs a day"})
    return found


async def _spent(store: Store, **where: Any) -> float:
    return sum(row.cost for row in await store.select(TokenUsage, where))


def _card(scope: str, name: str, budget: float | None, spent: float) -> Card:
    return {"scope": scope, "name": name, "budget": budget, "spent": round(spent, 4), "unit": "dollars"}


async def spent(client: Client, by: str, since: datetime, project: str | None = None) -> list[Card]:
    """What model calls used since then by agent, model, task, project or day; `name` is None where there is none.

    The dearest first, days the newest first. A call for a task counts for its project, wherever it was made.
    """
    store = await client.store()
    used = await store.select(TokenUsage, {"created_at": ("ge", since.astimezone(UTC))})
    tasks = {row.id: row for row in await store.select(Task)}
    projects = {row.id: row.slug for row in await store.select(Project)}

    def owner(row: TokenUsage) -> str | None:
        task = tasks.get(row.task_id) if row.task_id else None
        id = row.project_id or (task.project_id if task else None)
        return projects.get(id, str(id)) if id else None

    def name(row: TokenUsage) -> str | None:
        match by:
            case "agent":
                return row.agent
            case "model":
                return row.model
            case "task":
                task = tasks.get(row.task_id) if row.task_id else None
                return task.slug if task else str(row.task_id) if row.task_id else None
            case "project":
                return owner(row)
        return row.created_at.astimezone(UTC).date().isoformat()

    cards: dict[str | None, Card] = {}
    for row in used:
        if project in (None, owner(row)):
            card = cards.setdefault(called := name(row), {"name": called} | dict.fromkeys(_COUNTS, 0))
            _add(card, row.model_dump(include=set(_COUNTS)) | {"calls": 1})
    if by == "day":
        return sorted(cards.values(), key=lambda card: str(card["name"]), reverse=True)
    return sorted(
        cards.values(), key=lambda card: (-card["cost"], -card["input"] - card["output"], str(card["name"]))
    )


def total(cards: Iterable[Card]) -> Card:
    """All of them in one."""
    whole: Card = dict.fromkeys(_COUNTS, 0)
    for card in cards:
        _add(whole, card)
    return whole


def _add(card: Card, more: Card) -> None:
    for count in _COUNTS:
        card[count] += more[count]
    card["cost"] = round(card["cost"], 6)
