"""What went wrong is one line of the log, at the level of who must act, with ids and without people's words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.processes import Site, Worker, until
from tests.support.wire import Wire

WORDS = "persimmon"  # only people say this
RULES: list[dict[str, Any]] = [
    {"user": "wrong", "steps": [{"status": 400, "message": "it cannot be"}]},
    {"user": "busy", "steps": [{"text": "At last", "tries": [{"status": 529, "retry_after": 0}]}]},
    {"user": "decline", "steps": [{"text": "", "stop": "refusal"}]},
    {
        "user": "arguments",
        "steps": [
            {"tools": [{"name": "consult_planner", "input": {"question": WORDS, "no": WORDS}}]},
            {"text": "So"},
        ],
    },
    {"user": "nothing", "steps": [{"tools": [{"name": WORDS, "input": {}}]}, {"text": "So"}]},
    {
        "user": "forbidden",
        "steps": [{"tools": [{"name": "delete_project", "input": {"project_id": WORDS}}]}, {"text": "So"}],
    },
]
SETTINGS = {"PERMISSION_PROFILE": "locked"}


@pytest.fixture(scope="module")
def chatter(place: Site) -> Worker:
    """Chatter, who may only read."""
    return place.up("chatter")[0]


def line(chatter: Worker, wire: Wire, words: str, event: str) -> tuple[dict[str, Any], str]:
    """The one line of a turn with that event, and the id of the turn."""
    sent = wire.send(f"{words} {WORDS}", user=words)
    wire.closing(sent)
    found = until(
        lambda: [told for told in chatter.events() if told["event"] == event and told.get("turn") == sent],
        what=f"a line {event!r}",
    )
    assert len(found) == 1
    return found[0], sent


def test_a_turn_that_fails_is_an_error_with_its_cause(chatter: Worker, wire: Wire) -> None:
    told, sent = line(chatter, wire, "wrong", "A turn failed")
    assert (told["level"], told["kind"], told["session"]) == ("error", "ModelError", "user:wrong")
    assert (told["turn"], told["agent"]) == (sent, "chatter")
    assert "it cannot be" in told["why"] and "400" in told["why"]


def test_a_provider_that_is_tried_again_is_a_warning(chatter: Worker, wire: Wire) -> None:
    told, _ = line(chatter, wire, "busy", "The model is tried again")
    assert told["level"] == "warning" and "529" in told["why"]


def test_a_model_that_declines_is_a_warning(chatter: Worker, wire: Wire) -> None:
    assert line(chatter, wire, "decline", "The model declined to answer")[0]["level"] == "warning"


def test_a_call_with_wrong_arguments_is_told_by_its_tool_and_its_fields(chatter: Worker, wire: Wire) -> None:
    told, sent = line(chatter, wire, "arguments", "A tool call failed")
    assert (told["level"], told["tool"], told["call"]) == ("info", "consult_planner", f"{sent}.1.1")
    assert told["error"] == "consult_planner cannot take these arguments" and "no:" in told["why"]


def test_a_call_that_the_rules_forbid_is_a_warning(chatter: Worker, wire: Wire) -> None:
    told, _ = line(chatter, wire, "forbidden", "A tool call was refused")
    assert (told["level"], told["tool"], told["permissions"]) == ("warning", "delete_project", "locked")


def test_no_line_holds_what_people_said(chatter: Worker, wire: Wire) -> None:
    told, _ = line(chatter, wire, "nothing", "A tool call was refused")
    assert told["level"] == "info"
    others = [
        line for line in chatter.log.read_text("utf-8").splitlines() if f'"tool": "{WORDS}"' not in line
    ]
    assert [line for line in others if WORDS in line and "Claude requested tool" not in line] == []
