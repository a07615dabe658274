"""Budgets as a person looks at them, with nothing running."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.client import Client
from shared.client.views import budgets
from shared.settings import Settings
from shared.store.factory import store_file
from shared.store.records import Hook, HookRun, Project, Task, TokenUsage
from shared.store.sqlite import SqliteStore


async def test_the_daily_cap_of_a_hook_is_shown_with_its_runs_of_the_day(tmp_path: Path) -> None:
    settings = Settings(PROMPTDOCK_HOME=tmp_path)
    project = Project(slug="shop", name="Shop", budget=2.5)
    capped, free = (
        Hook(slug=slug, name=slug, project_id=project.id, prompt_template="Look.", trigger={}, daily_cap=cap)
        for slug, cap in (("capped", 5), ("free", None))
    )
    runs = [HookRun(hook_id=hook.id, project_id=project.id) for hook in (capped, free)]
    store = SqliteStore(store_file(settings))
    await store.open()
    for row in (project, capped, free, *runs):
        await store.insert(row)
    await store.close()
    async with Client(settings) as client:
        day, *others = await budgets.budgets(client)
    assert (day["scope"], day["unit"]) == ("day", "dollars")
    assert others == [
        {"scope": "project", "name": "shop", "budget": 2.5, "spent": 0, "unit": "dollars"},
        {"scope": "hook", "name": "capped", "budget": 5, "spent": 1, "unit": "runs a day"},
    ]


async def test_the_budget_of_a_task_is_shown_also_when_it_is_done_until_the_task_is_put_away(
    tmp_path: Path,
) -> None:
    settings = Settings(PROMPTDOCK_HOME=tmp_path)
    project = Project(slug="shop", name="Shop")
    tasks = [
        Task(slug="calm-otter", title="a", project_id=project.id, budget=2.5, status="IN_PROGRESS"),
        Task(slug="done-owl", title="b", project_id=project.id, budget=0, status="COMPLETED"),
        Task(slug="gone-ant", title="c", project_id=project.id, budget=1, status="COMPLETED", archived=True),
        Task(slug="plain-bee", title="d", project_id=project.id),
    ]
    store = SqliteStore(store_file(settings))
    await store.open()
    for row in (project, *tasks):
        await store.insert(row)
    await store.close()
    async with Client(settings) as client:
        _, *others = await budgets.budgets(client)
    assert others == [
        {"scope": "task", "name": "calm-otter", "budget": 2.5, "spent": 0, "unit": "dollars"},
        {"scope": "task", "name": "done-owl", "budget": 0, "spent": 0, "unit": "dollars"},
    ]


@pytest.fixture
async def spent(tmp_path: Path) -> Settings:
    """Calls of two agents: for a task of the shop, for the shop alone, for nothing, and one of long ago."""
    settings = Settings(PROMPTDOCK_HOME=tmp_path)
    project = Project(slug="shop", name="Shop")
    task = Task(slug="calm-otter", title="Build", project_id=project.id)
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def call(agent: str, cost: float, hours: int = 0, **more: Any) -> TokenUsage:
        at = noon - timedelta(hours=hours)
        return TokenUsage(created_at=at, agent=agent, model="m", input=10, output=1, cost=cost, **more)

    calls = [
        call("backend", 0.5, task_id=task.id),
        call("chatter", 0.25, hours=24, project_id=project.id),
        call("chatter", 0.1),
        call("chatter", 9, hours=2400),
    ]
    store = SqliteStore(store_file(settings))
    await store.open()
    for row in (project, task, *calls):
        await store.insert(row)
    await store.close()
    return settings


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("agent", {"backend": 0.5, "chatter": 0.35}),
        ("model", {"m": 0.85}),
        ("task", {"calm-otter": 0.5, None: 0.35}),
        ("project", {"shop": 0.75, None: 0.1}),
        ("day", {"2026-03-02": 0.6, "2026-03-01": 0.25}),
    ],
)
async def test_what_was_spent_is_told_by_what_a_person_asks_for(
    spent: Settings, by: str, names: dict[str | None, float]
) -> None:
    async with Client(spent) as client:
        found = await budgets.spent(client, by, datetime(2026, 3, 1, tzinfo=UTC))
    assert [(card["name"], card["cost"]) for card in found] == list(names.items())
    assert budgets.total(found) == {
        "calls": 3, "input": 30, "output": 3, "cache_read": 0, "cache_write": 0, "cost": 0.85,
    }  # fmt: skip


async def test_what_a_project_spent_is_also_what_its_tasks_did(spent: Settings) -> None:
    async with Client(spent) as client:
        found = await budgets.spent(client, "agent", datetime(2026, 3, 1, tzinfo=UTC), "shop")
    assert {card["name"]: card["cost"] for card in found} == {"backend": 0.5, "chatter": 0.25}
