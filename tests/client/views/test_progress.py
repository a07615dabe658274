"""A turn as it is watched: the line of a consult, and what stands below an answer."""

from __future__ import annotations

import pytest

from shared.bus.messages import Output
from shared.bus.presence import LIFE_MS
from shared.client.views.status import Pulse
from shared.client.views.tasks.progress import NEWS, ConsultProgress, TurnProgress

USAGE = {"input": 1200, "output": 34, "cost": 0.01234}


def answer(*turns: str) -> Output:
    fields = {"id": "o", "session_id": "s", "answers": list(turns), "usage": USAGE}
    return Output(user_id="ada", content="Done", status="complete", **fields)  # type: ignore[arg-type]


def asked(agent: str = "planner") -> tuple[TurnProgress, ConsultProgress]:
    """A turn t-1 in which an agent was asked."""
    work = TurnProgress()
    work.take("start", {"turn_id": "t-1"})
    work.take("tool_call", {"tool": f"consult_{agent}", "arguments": {"question": "Which\ncolour?"}})
    consult = work.take("consult", {"agent": agent, "request_id": "r-1", "state": "sent"})
    assert consult is not None
    return work, consult


def test_below_an_answer_stand_time_tokens_money_and_whoever_worked_for_it() -> None:
    work, _ = asked()
    work.take("consult", {"agent": "planner", "request_id": "r-1", "state": "answered", "ms": 2500})
    work.take("tool_result", {"content": {"status": "assigned", "task_id": "calm-otter"}})
    assert work.footer(answer("t-1"), 3.21) == (
        "3.2 s · 1200 tokens in, 34 out · $0.0123 · planner 2.5 s · task calm-otter"
    )


def test_an_answer_to_another_turn_is_not_told_with_the_work_of_this_one() -> None:
    work, _ = asked()
    work.take("tool_result", {"content": {"status": "assigned", "task_id": "calm-otter"}})
    assert work.footer(answer("t-2"), None) == "1200 tokens in, 34 out · $0.0123"


def test_a_consult_says_its_question_until_there_is_news_of_what_the_agent_does() -> None:
    _, consult = asked()
    began = consult.since
    assert consult.told(began + 2) == "2 s planner: Which colour?"
    consult.pulse = Pulse(1000, "reads view.py")
    assert consult.told(began + 2) == "2 s planner alive: Which colour?"
    assert consult.told(began + NEWS + 1) == f"{NEWS + 1:.0f} s planner alive: reads view.py"


def test_an_agent_without_a_heartbeat_is_silent_once_it_had_time_to_live() -> None:
    _, consult = asked()
    life = LIFE_MS / 1000
    assert not consult.silent(consult.since + life + 1), "nobody has looked yet"
    consult.pulse = Pulse(None, "")
    assert not consult.silent(consult.since + life - 1)
    assert "no heartbeat yet" in consult.told(consult.since + life - 1)
    assert consult.silent(consult.since + life + 1)
    assert "silent" in consult.told(consult.since + life + 1)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ("answered", "planner answered in 2.5 s"),
        ("late", "planner answered late in 2.5 s"),
        ("timeout", "planner did not answer in time in 2.5 s"),
        ("offline", "planner is offline in 2.5 s"),
    ],
)
def test_a_consult_that_ended_says_how(state: str, line: str) -> None:
    work, consult = asked()
    work.take("consult", {"agent": "planner", "request_id": "r-1", "state": state, "ms": 2500})
    assert consult.told(0.0) == line
    assert work.open == []


def test_the_end_of_another_turn_does_not_end_this_one() -> None:
    work, _ = asked()
    work.take("done", {"turn_id": "t-0"})
    assert work.running
    work.take("done", {"turn_id": "t-1"})
    assert not work.running


def test_a_turn_that_is_closed_waits_for_nobody_though_its_events_do_not_come() -> None:
    work, consult = asked()
    work.end()
    assert (work.running, work.open, consult.state) == (False, [], "stopped")
