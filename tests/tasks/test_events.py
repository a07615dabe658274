"""What the bus hears of tasks: transitions and what workers tell on their way, in one vocabulary."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from shared.bus.keys import TASKS, Names
from shared.bus.redis import RedisBus
from shared.store.records import Task, TaskEvent, TaskStatus
from shared.store.row import new_id
from shared.tasks import states
from shared.tasks.events import TaskEvents

STATUSES = get_args(TaskStatus)


async def _kept(redis: RedisBus, names: Names) -> list[dict[str, Any]]:
    entries = await redis.command("XRANGE", names.stream(TASKS), "-", "+")
    return [json.loads(fields[1]) for _, fields in entries]


async def test_a_transition_is_told_with_the_state_that_it_led_to(redis: RedisBus, names: Names) -> None:
    task = Task(slug="calm-otter", project_id=new_id(), title="Do it", assignee="backend")
    row = TaskEvent(
        task_id=task.id, project_id=task.project_id, event="started",
        from_status="ASSIGNED", to_status="IN_PROGRESS", actor="backend",
    )  # fmt: skip
    async with TaskEvents(redis, names) as events:
        events.transition(row, task, "shop")
    [told] = await _kept(redis, names)
    assert (told["event"], told["task_id"], told["project"], told["agent"]) == (
        "task",
        "calm-otter",
        "shop",
        "backend",
    )
    assert (told["change"], told["from"], told["state"], told["status"]) == (
        "started", "ASSIGNED", "IN_PROGRESS", "IN_PROGRESS",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("assigned", "ASSIGNED"),
        ("verifying", "IN_PROGRESS"),
        ("question", "WAITING_INPUT"),
        ("completed", "COMPLETED"),
        (states.REVIEW, "AWAITING_APPROVAL"),
        ("failed", "FAILED"),
        ("spent", "PAUSED"),
        ("stopped", "BLOCKED"),
    ],
)
async def test_a_worker_s_word_keeps_its_field_and_has_the_state_beside_it(
    redis: RedisBus, names: Names, word: str, status: str
) -> None:
    async with TaskEvents(redis, names) as events:
        events.news("calm-otter", word, "backend", question="Which?")
    [told] = await _kept(redis, names)
    assert (told["state"], told["status"], told["agent"], told["question"]) == (
        word,
        status,
        "backend",
        "Which?",
    )
    assert "change" not in told, "it is no transition"


def test_each_outcome_leads_to_one_state_of_the_machine() -> None:
    assert {states.after(events) for events in states.OUTCOMES.values()} <= set(STATUSES)


async def test_a_project_s_row_is_told_as_such(redis: RedisBus, names: Names) -> None:
    id = new_id()
    row = TaskEvent(
        task_id=id,
        project_id=id,
        event="project_paused",
        actor="ann",
        detail={"project": "shop"},
    )
    async with TaskEvents(redis, names) as events:
        events.transition(row, None, "shop")
    [told] = await _kept(redis, names)
    assert (told["event"], told["change"], told["project"]) == ("project", "paused", "shop")
