"""What the model is told beside what is said: the system never changes with time, the situation does."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta

from shared.conversation.prompt import active_project, compose, is_situation, situation, spoken

NOON = datetime(2026, 5, 4, 12, 0, 30, tzinfo=UTC)
ROSTER = {"planner": "plans", "backend": ""}


def test_the_parts_come_in_the_order_in_which_they_change() -> None:
    parts = compose("  You are Chatter.\n", roster=ROSTER, repositories="- api (backend)")
    assert parts[0] == "You are Chatter."
    assert "- backend\n- planner: plans" in parts[1] and "- api (backend)" in parts[1]
    assert len(parts) == 2


def test_what_is_empty_is_said_to_be_so() -> None:
    around = compose("x", roster={}, repositories="")[1]
    assert "- none\n" in around and "- none registered" in around


def test_nothing_in_the_system_depends_on_the_time_or_on_the_order_in_which_agents_came() -> None:
    assert "now" not in inspect.signature(compose).parameters
    there = compose("x", roster=ROSTER, repositories="r")
    assert compose("x", roster=dict(reversed(ROSTER.items())), repositories="r") == there


def test_the_situation_is_a_note_that_changes_with_the_minute() -> None:
    told = situation(["ACTIVE PROJECT: `shop`."], NOON)
    assert told == "[Current date and time: 2026-05-04 12:00 UTC\nACTIVE PROJECT: `shop`.]"
    assert situation((), NOON) == situation((), NOON + timedelta(seconds=29))
    assert situation((), NOON) != situation((), NOON + timedelta(seconds=60))
    assert situation(["a ] b"], NOON).count("]") == 1, "what is told ends no note"


def test_what_was_spoken_is_told_without_the_situation() -> None:
    content = [{"type": "text", "text": text} for text in ("[from ann]: hello", situation((), NOON))]
    assert spoken(content) == "[from ann]: hello"
    assert not is_situation("[from ann]: [Current date and time: now]")


def test_the_active_project_is_told_and_what_it_means_where_somebody_chose_it() -> None:
    assert active_project("default") == "ACTIVE PROJECT: `default`."
    chosen = active_project("shop")
    assert chosen.startswith(
        "ACTIVE PROJECT: `shop`.\nUse this as the default project_id for all tools unless"
    )
    assert situation([chosen], NOON).endswith("or any project-scoped operation, use this project.]")
