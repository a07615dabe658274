"""The system prompt: what never changes stands first, what changes with each minute last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shared.conversation.prompt import compose

NOON = datetime(2026, 5, 4, 12, 0, 30, tzinfo=UTC)
ROSTER = {"planner": "plans", "backend": ""}


def test_the_parts_come_in_the_order_in_which_they_change() -> None:
    parts = compose("  You are Chatter.\n", roster=ROSTER, repositories="- api (backend)", now=NOON)
    assert parts[0] == "You are Chatter."
    assert "- backend\n- planner: plans" in parts[1] and "- api (backend)" in parts[1]
    assert parts[-1] == "Current date and time: 2026-05-04 12:00 UTC"


def test_what_is_empty_is_said_to_be_so() -> None:
    around = compose("x", roster={}, repositories="", now=NOON)[1]
    assert "- none\n" in around and "- none registered" in around


def test_everything_but_the_time_is_the_same_a_minute_later_and_all_of_it_within_the_minute() -> None:
    def at(seconds: int) -> tuple[str, ...]:
        return compose("x", roster=ROSTER, repositories="r", now=NOON + timedelta(seconds=seconds))

    assert at(0) == at(29)
    assert at(0)[:-1] == at(60)[:-1]
    assert at(0)[-1] != at(60)[-1]
    assert compose("x", roster=dict(reversed(ROSTER.items())), repositories="r", now=NOON) == at(0)
