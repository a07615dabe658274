"""Tasks that rest and go on, and budgets that people set while the cluster runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.store.records import Project, Task, TaskResult, now
from shared.tasks import budgets
from tests.tools.agents.test_rows import HERE
from tests.tools.bench import Bench


async def made(bench: Bench, **values: Any) -> Task:
    """A task, then brought into a state as a worker would."""
    slug = (await bench.ok("create_task", title="x"))["created"]
    if values:
        await bench.store.update(Task, values, {"slug": slug})
    return (await bench.store.select(Task, {"slug": slug}))[0]


async def test_a_task_that_nobody_works_on_is_paused_at_once_and_goes_on_by_a_word(bench: Bench) -> None:
    task = await made(bench)
    told = await bench.twice("pause_task", task_id=task.slug, hours=2)
    assert told["paused"] == task.slug
    [row] = await bench.store.select(Task, {"id": task.id})
    assert row.status == "PAUSED" and row.resume_at is not None
    assert timedelta(hours=1.9) < row.resume_at - now() < timedelta(hours=2.1)
    later = await bench.ok("pause_task", task_id=task.slug, hours=5)
    [row] = await bench.store.select(Task, {"id": task.id})
    assert row.resume_at is not None and row.resume_at - now() > timedelta(hours=4.9)
    assert later["resumes"] == row.resume_at.isoformat()
    assert (await bench.ok("resume_task", task_id=task.slug))["status"] == "READY"
    assert "it is READY" in await bench.no("resume_task", task_id=task.slug)


@pytest.mark.parametrize("status", ["DEFINED", "VERIFYING", "COMPLETED", "BLOCKED", "AWAITING_APPROVAL"])
async def test_what_does_not_run_and_will_not_is_not_paused(bench: Bench, status: str) -> None:
    task = await made(bench, status=status)
    assert f"it is {status}" in await bench.no("pause_task", task_id=task.slug)


async def test_a_task_that_waits_for_its_next_try_is_paused_and_stopped(bench: Bench) -> None:
    task = await made(bench, status="FAILED", attempts=1, assignee="backend", request_id="r-1")
    assert (await bench.twice("pause_task", task_id=task.slug, hours=2))["was"] == "waiting"
    [row] = await bench.store.select(Task, {"id": task.id})
    assert row.status == "PAUSED" and row.resume_at is not None and row.resume_at > now() + timedelta(hours=1)
    other = await made(bench, status="FAILED", attempts=1, assignee="backend", request_id="r-2")
    assert (await bench.twice("stop_task", task_id=other.slug))["was"] == "waiting"
    assert [row.status for row in await bench.store.select(Task, {"id": other.id})] == ["BLOCKED"]


async def test_a_task_that_was_out_of_money_is_resumed_with_a_warning(bench: Bench) -> None:
    task = await made(bench, status="PAUSED", question="the budget of the task x ($1.00)")
    assert "it stops there again" in (await bench.ok("resume_task", task_id=task.slug))["warning"]


async def test_budgets_are_set_and_taken_away(bench: Bench) -> None:
    task = await made(bench)
    await bench.ok("edit_task", task_id=task.slug, budget=2.5)
    assert (await bench.ok("get_task", task_id=task.slug))["budget"] == 2.5
    assert (await bench.ok("edit_task", task_id=task.slug, budget=None))["fields"] == ["budget"]
    assert "budget" not in await bench.ok("get_task", task_id=task.slug)
    for dollars in (0.5, None):
        await bench.ok("edit_project", project_id="default", budget_limit=dollars)
        assert [row.budget for row in await bench.store.select(Project, {"slug": "default"})] == [dollars]
    assert await budgets.day(bench.store, 7.0) == 7.0
    await bench.ok("set_day_budget", dollars=20)
    assert await budgets.day(bench.store, 7.0) == 20.0
    assert "BUDGET_DAY" in (await bench.ok("set_day_budget", dollars=None))["note"]
    assert await budgets.day(bench.store, 7.0) == 7.0


async def test_what_a_task_will_probably_need_is_told_when_it_is_assigned(bench: Bench) -> None:
    await bench.linked()
    here = {**HERE, "force": True}
    given = {"agent": "backend", "command_file": "# Do it", "repo": "shop"}
    assert "expected" not in await bench.run("assign_task", here=here, **given)
    for cost in (0.25, 0.5, 4.0):
        task = await made(bench)
        await bench.store.insert(
            TaskResult(task_id=task.id, agent="backend", cost=cost, tokens_used=int(cost * 1000))
        )
    told = await bench.run("assign_task", here=here, **given)
    assert told["expected"] == {"cost": 0.5, "tokens": 500, "from_tasks": 3}
