"""Hooks as rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from shared.store.records import Hook, HookRun
from tests.tools.bench import Bench

HOOK: dict[str, Any] = {
    "project_id": "default",
    "name": "Nightly Check",
    "trigger": {"type": "cron", "cron": "0 3 * * 1-5"},
    "context_steps": [{"type": "shell", "command": "make test"}, {"type": "git_diff"}],
    "prompt_template": "Look at {{step_0}}",
}


async def test_a_hook_is_made_once_listed_edited_and_deleted_with_its_runs(bench: Bench) -> None:
    made = await bench.twice("create_hook", **HOOK)
    assert (made["created"], made["project_id"]) == ("nightly-check", "default")
    assert "nothing launches" in made["warning"]
    assert "already" in await bench.no("create_hook", **HOOK)
    told = await bench.ok(
        "edit_hook", hook_id="nightly-check", enabled=False, max_tokens_per_run=5000, daily_cap=7,
        trigger={"type": "event", "event_type": "task_completed"},
    )  # fmt: skip
    assert told["fields"] == ["enabled", "trigger", "max_tokens_per_run", "daily_cap"]
    [row] = (await bench.ok("list_hooks", project_id="default"))["hooks"]
    assert (row["enabled"], row["trigger"]["event_type"], row["cooldown_seconds"]) == (
        False,
        "task_completed",
        3600,
    )
    [hook] = await bench.store.select(Hook)
    assert (hook.daily_cap, row["daily_cap"]) == (7, 7)
    await bench.store.insert(HookRun(hook_id=hook.id, state="failed", error="no model"))
    [run] = (await bench.ok("list_hook_runs", hook_id="nightly-check"))["runs"]
    assert (run["state"], run["error"]) == ("failed", "no model")
    assert (await bench.ok("delete_hook", hook_id="nightly-check"))["deleted"] == "nightly-check"
    assert (await bench.store.count(Hook), await bench.store.count(HookRun)) == (0, 0)
    for tool in ("edit_hook", "delete_hook", "list_hook_runs", "fire_hook"):
        assert "no hook called" in await bench.no(tool, hook_id="nightly-check")


async def test_a_hook_is_fired_where_something_launches_hooks_and_not_while_it_runs(bench: Bench) -> None:
    await bench.ok("create_hook", **HOOK)
    assert "nothing launches" in await bench.no("fire_hook", hook_id="nightly-check")
    fired: list[tuple[str, str]] = []

    async def fire(hook: Hook, _here: Any, key: str) -> dict[str, Any]:
        fired.append((hook.slug, key))
        return {"fired": hook.slug, "status": "running"}

    bench.given["services"] = SimpleNamespace(fire_hook=fire)
    told = await bench.run("fire_hook", hook_id="nightly-check", step="t1.99")
    assert (told["status"], fired) == ("running", [("nightly-check", "t1.99")])
    [hook] = await bench.store.select(Hook)
    await bench.store.insert(HookRun(hook_id=hook.id, state="running"))
    assert "running already" in await bench.no("fire_hook", hook_id="nightly-check")
    assert "warning" not in await bench.ok("list_hooks")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "***"}, "no name"),
        ({"trigger": {}}, "type"),
        ({"trigger": {"type": "cron", "cron": "61 * * * *"}}, "no cron expression"),
        ({"trigger": {"type": "cron", "cron": "@reboot; rm -rf /"}}, "no cron expression"),
        ({"trigger": {"type": "periodic"}}, "interval_seconds"),
        ({"trigger": {"type": "periodic", "interval_seconds": 0}}, "greater than or equal to 10"),
        ({"trigger": {"type": "event", "event_type": "x", "cron": "* * * * *"}}, "nothing else"),
        ({"context_steps": [{"type": "eval"}]}, "context step 0"),
        ({"context_steps": [{"type": "http"}]}, "needs url"),
        ({"project_id": "nothing"}, "no project"),
    ],
)
async def test_a_hook_that_makes_no_sense_is_refused(bench: Bench, change: dict[str, Any], why: str) -> None:
    assert why in await bench.no("create_hook", **{**HOOK, **change})
    assert await bench.store.count(Hook) == 0
