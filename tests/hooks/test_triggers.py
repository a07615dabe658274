"""When hooks are due, what their prompts say, and what their steps look at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.errors import Denied, UsageError
from shared.hooks import triggers
from shared.hooks.steps import StepResult, look
from shared.hooks.template import render
from shared.store.records import Hook, TaskEvent, new_id, project_key

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)  # a Monday


def hook(trigger: dict[str, Any], launched: datetime | None = None, cooldown: int = 0) -> Hook:
    return Hook(
        slug="watch", name="Watch", project_id=project_key("shop"), prompt_template="x", trigger=trigger,
        launched_at=launched, cooldown_seconds=cooldown, created_at=NOON - timedelta(days=30),
    )  # fmt: skip


def test_a_periodic_hook_is_due_an_interval_after_its_launch() -> None:
    every = hook({"type": "periodic", "interval_seconds": 600}, NOON)
    assert triggers.due(every, NOON + timedelta(seconds=599)) is None
    assert triggers.due(every, NOON + timedelta(seconds=600)) == NOON + timedelta(seconds=600)


def test_a_cron_hook_is_due_once_for_all_moments_that_passed_unseen() -> None:
    weekdays = hook({"type": "cron", "cron": "0 9 * * 1-5"}, NOON - timedelta(days=10))
    assert triggers.due(weekdays, NOON) == NOON.replace(hour=9)
    assert triggers.due(hook(weekdays.trigger, NOON.replace(hour=9)), NOON) is None
    assert (
        triggers.due(hook(weekdays.trigger, NOON.replace(hour=8, minute=59)), NOON.replace(hour=9))
        is not None
    )


def test_a_cron_hook_is_not_due_a_moment_before_its_moment() -> None:
    each_minute = hook({"type": "cron", "cron": "* * * * *"}, NOON - timedelta(minutes=1))
    assert triggers.due(each_minute, NOON - timedelta(milliseconds=590)) is None
    assert triggers.due(each_minute, NOON) == NOON


def test_an_event_hook_is_never_due_by_the_clock() -> None:
    assert triggers.due(hook({"type": "event", "event_type": "task_completed"}), NOON) is None


def test_the_preview_shows_the_next_runs_with_the_cooldown_counted_in() -> None:
    hourly = hook({"type": "cron", "cron": "0 * * * *"}, NOON, cooldown=5400)
    assert [at.hour for at in triggers.upcoming(hourly, NOON, 3)] == [14, 16, 18]
    often = hook({"type": "periodic", "interval_seconds": 60}, NOON, cooldown=3600)
    assert triggers.upcoming(often, NOON, 2) == [NOON + timedelta(hours=1), NOON + timedelta(hours=2)]
    assert triggers.upcoming(hook({"type": "event", "event_type": "x"}), NOON) == []
    with pytest.raises(UsageError, match="no cron expression"):
        triggers.upcoming(hook({"type": "cron", "cron": "never"}), NOON)


def test_a_transition_stands_for_the_state_reached_and_for_the_event_itself() -> None:
    event = TaskEvent(task_id=new_id(), event="passed", to_status="COMPLETED")
    assert triggers.names(event) == ("task_completed", "task.passed")
    assert triggers.wants(hook({"type": "event", "event_type": "task_completed"}), triggers.names(event))
    assert not triggers.wants(hook({"type": "event", "event_type": "task_failed"}), triggers.names(event))


def test_what_leaves_a_task_in_its_state_does_not_reach_that_state_again() -> None:
    merged = TaskEvent(task_id=new_id(), event="merged", from_status="COMPLETED", to_status="COMPLETED")
    assert triggers.names(merged) == ("task.merged",)
    approved = merged.model_copy(update={"event": "approved", "from_status": "AWAITING_APPROVAL"})
    assert triggers.names(approved) == ("task_completed", "task.approved")


STEPS: list[StepResult] = [
    {"type": "shell", "stdout": "2 failed {{event}}", "returncode": 1},
    {"type": "db_query", "rows": [{"task_id": "bold-otter"}], "count": 1},
]


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        ("It says {{step_0}}", "It says 2 failed {{event}}"),
        ("{{ step_0.returncode }} of {{step_1.count}}", "1 of 1"),
        ("{{step_1}}", '[{"task_id": "bold-otter"}]'),
        ("{{event.task_id}}: {{event}}", 'calm-fox: {"task_id": "calm-fox"}'),
        ("{{step_7}} {{step_0.nothing}} {{event.no.such}} {{user}}",) * 2,
    ],
)
def test_a_template_is_filled_in_and_what_stands_for_nothing_stays(template: str, prompt: str) -> None:
    assert render(template, STEPS, {"task_id": "calm-fox"}) == prompt


async def door(tool: str, arguments: dict[str, Any]) -> StepResult:
    if arguments.get("command") == "rm -rf /":
        raise Denied("run_command is not allowed in a hook", "no rule allows it")
    found: dict[str, StepResult] = {
        "run_command": {"returncode": 0, "stdout": "", "stderr": ""},
        "read_file": {"content": ""},
        "http_get": {"status": 204, "body": ""},
        "named_query": {"rows": [], "count": 0},
        "git_diff": {"diff": "-a\n+b"},
    }
    return found[tool]


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"type": "shell", "command": "true", "skip_llm_if_exit_zero": True}, "exited with 0"),
        ({"type": "http", "url": "https://example.org", "skip_llm_if_status_ok": True}, "answered 204"),
        ({"type": "db_query", "query": "failed_tasks", "skip_llm_if_empty": True}, "nothing was found"),
        ({"type": "read_file", "path": "TODO", "skip_llm_if_empty": True}, "nothing was found"),
    ],
)
async def test_a_step_may_say_that_no_agent_need_be_asked(step: dict[str, Any], why: str) -> None:
    never = {"type": "shell", "command": "rm -rf /"}
    looked = await look([step, never], "shop", door)
    assert why in looked.skip and not looked.error
    assert len(looked.steps) == 1
    kept = {key: value for key, value in step.items() if not key.startswith("skip")}
    assert (await look([kept], "shop", door)).skip == ""


async def test_steps_run_in_order_and_one_that_is_not_allowed_ends_the_run() -> None:
    diff = {"type": "git_diff", "skip_llm_if_empty": True}
    looked = await look([diff, {"type": "shell", "command": "rm -rf /"}, diff], "shop", door)
    assert looked.error == "step 1 (shell): run_command is not allowed in a hook. no rule allows it"
    assert [found["type"] for found in looked.steps] == ["git_diff"]
