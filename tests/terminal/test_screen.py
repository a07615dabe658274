"""How finished text looks, and that nothing in it commands the terminal."""

from __future__ import annotations

from typing import Any

import pytest

from gateways.terminal.screen import Plain, Rich, Screen, hanging
from shared.bus.messages import Output


def _output(content: str, status: str = "complete", **fields: Any) -> Output:
    words = {"id": "o", "session_id": "s", "user_id": "ada", "timestamp": "2026-01-01T00:00:00Z"}
    return Output.model_validate({**words, "content": content, "status": status, **fields})


@pytest.mark.parametrize("screen", [Plain(), Rich()])
def test_what_a_model_wrote_cannot_command_the_terminal(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    attack = "fine\x1b]0;owned\x07\x1b[2J\x9b31m \u202egnp.exe\r# \x1b]8;;http://x\x07link"
    screen.answer(_output(attack))
    screen.answer(_output("ok", "awaiting_input", question=attack, options=[attack]))
    screen.note(attack)
    screen.error(attack)
    screen.block(attack)
    told = "".join(capsys.readouterr())
    for bad in ("\x1b]", "\x1b[2J", "\x9b", "\u202e", "\r", "owned", "\x07"):
        assert bad not in told


def test_plain_output_has_no_escape_sequence_and_talks_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Plain()
    screen.answer(_output("# Title\n- one", demo=True))
    screen.note("3 s")
    told = capsys.readouterr()
    assert told.out == "[demo] # Title\n- one\n"
    assert told.err == "… 3 s\n"


def test_a_link_shows_where_it_leads(capsys: pytest.CaptureFixture[str]) -> None:
    Rich().answer(_output("[click](http://elsewhere.example)"))
    assert "http://elsewhere.example" in capsys.readouterr().out


def test_a_request_for_leave_shows_its_three_answers_by_number(capsys: pytest.CaptureFixture[str]) -> None:
    Plain().answer(_output("Backend asks for permission", "awaiting_approval"))
    assert "  1. allow once\n  2. always\n  3. deny\n" in capsys.readouterr().out


def test_a_request_that_nobody_could_hold_for_good_is_not_offered_for_good(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = _output(
        "Backend asks for permission", "awaiting_approval", approval={"options": ["allow_once", "deny"]}
    )
    Plain().answer(asked)
    assert "  1. allow once\n  3. deny\n" in capsys.readouterr().out


def test_a_long_line_goes_on_below_where_it_began() -> None:
    text = "Chatter asks for permission\n  its receipt says verified: grep exit 0\n  1. allow this once more"
    assert hanging(text, 24).split("\n") == [
        "Chatter asks for",
        "permission",
        "  its receipt says",
        "    verified: grep exit",
        "    0",
        "  1. allow this once",
        "     more",
    ]
    assert hanging("· stopping the turn", 14) == "· stopping the\n  turn"
    assert hanging("x" * 30, 14) == "x" * 30
    assert hanging("\n> a", 14) == "\n> a"
