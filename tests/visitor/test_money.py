"""Budgets as a person looks at them, with nothing running."""

from __future__ import annotations

from pathlib import Path

from shared.settings import Settings
from shared.store.records import Hook, HookRun, Project
from shared.store.sqlite import SqliteStore
from shared.visitor import Visitor, connect, money


async def test_the_daily_cap_of_a_hook_is_shown_with_its_runs_of_the_day(tmp_path: Path) -> None:
    settings = Settings(PROMPTDOCK_HOME=tmp_path)
    project = Project(slug="shop", name="Shop", budget=2.5)
    capped, free = (
        Hook(slug=slug, name=slug, project_id=project.id, prompt_template="Look.", trigger={}, daily_cap=cap)
        for slug, cap in (("capped", 5), ("free", None))
    )
    runs = [HookRun(hook_id=hook.id, project_id=project.id) for hook in (capped, free)]
    store = SqliteStore(connect.store_file(settings))
    await store.open()
    for row in (project, capped, free, *runs):
        await store.insert(row)
    await store.close()
    async with Visitor(settings) as visitor:
        day, *others = await money.budgets(visitor)
    assert (day["scope"], day["unit"]) == ("day", "dollars")
    assert others == [
        {"scope": "project", "name": "shop", "budget": 2.5, "spent": 0, "unit": "dollars"},
        {"scope": "hook", "name": "capped", "budget": 5, "spent": 1, "unit": "runs a day"},
    ]
