"""Moments, amounts and names as the page writes them."""

from __future__ import annotations

import pytest

from gateways.web.pages.trace import drawn
from gateways.web.render import words
from shared.client.views.inbox import Item


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0"), (998, "998"), (3350, "3.4k"), (12_400, "12k"), (1_200_000, "1.2M")]
)
def test_numbers_are_short(number: int, told: str) -> None:
    assert words.count(number) == told


def test_spans_and_money_are_told_by_their_size() -> None:
    assert [words.seconds(one) for one in (None, 0.157, 14.2, 190, 7500)] == [
        "", "157 ms", "14.2 s", "3 min 10 s", "2 h 5 min",
    ]  # fmt: skip
    assert [words.dollars(one) for one in (0, 0.0042, 5)] == ["$0.00", "$0.0042", "$5.00"]


def test_a_moment_is_for_the_browser_to_put_into_its_readers_zone() -> None:
    made = words.moment("2026-11-01T12:00:00+02:00", "clock")
    assert 'datetime="2026-11-01T10:00:00+00:00"' in made and ">10:00<" in made
    assert words.moment("<script>") == ""


def test_what_waits_leads_to_where_it_is_answered() -> None:
    def to(kind: str, id: str, what: str = "", session: str = "") -> str:
        return words.whither(Item(kind, id, what, "", session=session))  # type: ignore[arg-type]

    assert to("review", "calm-otter") == "/tasks/calm-otter/diff"
    assert to("question", "m.end", "Chatter asks: x", "a/b") == "/chat/a%2Fb"
    assert to("question", "calm-otter", "calm-otter asks: x", "s") == "/tasks/calm-otter"
    assert to("dead", "dead") == "/health"


def test_a_trace_is_drawn_over_one_span_of_time() -> None:
    def turn(at: str, ms: int | None, **more: object) -> dict[str, object]:
        plain = {"agent": "chatter", "depth": 0, "state": "complete", "input": 1, "output": 2, "cost": 0.5}
        return plain | {"started_at": at, "ms": ms, "error": None, "steps": [], **more}

    step = {
        "what": "answers",
        "kind": "model",
        "after_ms": 500,
        "ms": 250,
        "usage": [3, 4, 0, 0, 0.0],
        "failed": False,
    }
    turns, total = drawn(
        [turn("2026-11-01T12:00:00+00:00", 2000, steps=[step]), turn("2026-11-01T12:00:01+00:00", 1000)]
    )
    assert (turns[0].left, turns[0].width, turns[1].left, turns[1].width) == (0, 1000, 500, 500)
    assert (turns[0].steps[0].left, turns[0].steps[0].width) == (250, 125)
    assert (total.seconds, total.input, total.cost) == (2, 2, 1)
    assert drawn([])[0] == []
    assert drawn([turn("2026-11-01T12:00:00+00:00", None)])[0][0].width >= 3
