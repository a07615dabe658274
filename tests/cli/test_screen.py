"""What the command line makes of values before it prints them."""

from __future__ import annotations

import io
import json
import sys

import pytest

from gateways.cli import pager, screen
from shared.errors import UsageError

TITLE = "A page of the shop, and what belongs to it, and more of it, and all the rest of it, to the end"
ROWS: list[list[object]] = [
    ["calm-otter", screen.state("COMPLETED, merged"), TITLE],
    ["ivy", "", None],
]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who set nothing, and typed no option."""
    for name in ("NO_COLOR", "COLUMNS", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen.begin([])


def _terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)


@pytest.mark.parametrize("columns", [100, 60, 40])
def test_a_table_fits_the_line_and_keeps_its_names_whole(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    screen.table(ROWS, ("id", "status", "title"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= columns
    assert lines[1].startswith("calm-otter  COMPLETED")
    assert lines[1].endswith("…")


TASKS: list[list[object]] = [
    ["quiet-marmoset", screen.state("COMPLETED, to be merged"), "researcher", "12 min", TITLE],
    ["ivy", screen.state("PENDING"), "", "3 s", "Short"],
]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_state_of_a_task_stays_whole_and_its_title_gives_way_first(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    screen.table(TASKS, ("id", "status", "assignee", "age", "title"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and max(map(len, lines)) <= columns
    assert lines[1].startswith("quiet-marmoset  COMPLETED, to be merged  ")
    assert lines[1].endswith("…")
    if columns > 60:
        assert "researcher  12 min  A page" in lines[1], "a name is cut after a title"
    else:
        assert "12 min" in lines[1], "a number is cut last"


def test_a_long_head_gives_way_to_what_stands_below_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rows = [["web-shop", "", "active", 3, 12, "A shop in the web, and its stock of goods"]]
    screen.table(rows, ("id", "", "status", "repositories", "open tasks", "name"))
    head, row = capsys.readouterr().out.splitlines()
    assert "reposi" in head and "repositories" not in head
    assert row.startswith("web-shop    active  3") and "  12  " in row and "A shop in the web" in row


def test_who_wants_all_of_a_table_gets_its_long_cells_on_more_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(screen.manner, "whole", True)
    screen.table(ROWS, ("id", "status", "title"))
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 60 and "…" not in told
    assert all(word in told for word in TITLE.split())


def test_a_table_that_no_terminal_shows_is_cut_nowhere_and_has_no_colours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen.table(ROWS, ("id", "status", "title"))
    told = capsys.readouterr().out
    assert "COMPLETED, merged" in told and TITLE in told
    assert "\x1b" not in told


def test_an_empty_table_says_so_in_words_beside_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    screen.table([], ("id",), "No task was made yet.")
    assert capsys.readouterr() == ("", "No task was made yet.\n")


def test_a_terminal_shows_states_in_colour(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _terminal(monkeypatch, 100)
    screen.table(ROWS, ("id", "status", "title"))
    screen.out(screen.bad("FAIL"), " redis")
    told = capsys.readouterr().out
    assert "\x1b[32mCOMPLETED, merged" in told
    assert "\x1b[1;31mFAIL\x1b[0m redis" in told


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_gets_none(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _terminal(monkeypatch, 100)
    monkeypatch.setenv(name, value)
    screen.table(ROWS, ("id", "status", "title"))
    screen.out(screen.bad("FAIL"))
    assert "\x1b" not in capsys.readouterr().out


def test_styled_text_cannot_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _terminal(monkeypatch, 100)
    screen.out(screen.good("a\x1b]0;title\x07b"))
    assert capsys.readouterr().out == "\x1b[32mab\x1b[0m\n"


def test_what_is_longer_than_the_terminal_goes_through_the_pager_and_talk_comes_behind_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _terminal(monkeypatch, 100)
    monkeypatch.setenv("LINES", "10")
    shown: list[str] = []

    def shows(text: str) -> bool:
        shown.append(text)
        return True

    monkeypatch.setattr(pager, "shows", shows)
    with screen.paged():
        screen.talk("it can be merged")
        for number in range(30):
            screen.out(str(number))
        assert capsys.readouterr() == ("", "")
    assert shown == ["".join(f"{number}\n" for number in range(30))]
    assert capsys.readouterr() == ("", "it can be merged\n")


@pytest.mark.parametrize(
    ("lines", "pager_name"), [(3, "less"), (30, "cat"), (30, ""), (30, "no-such-pager-here")]
)
def test_a_short_text_or_one_without_a_pager_is_printed(
    lines: int, pager_name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _terminal(monkeypatch, 100)
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("PAGER", pager_name)
    with screen.paged():
        for _ in range(lines):
            screen.out("x")
    assert capsys.readouterr().out == "x\n" * lines


def test_json_that_the_locale_cannot_write_is_still_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace"))
    screen.document("x", text="é 🦦 …")
    assert json.loads(raw.getvalue())["text"] == "é 🦦 …"


def test_with_json_an_error_is_one_document_with_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    screen.begin(["tasks", "--json"])
    screen.complain(UsageError("there is no task 'x'", "did you mean y?", "promptdock tasks list shows them"))
    out, err = capsys.readouterr()
    error = json.loads(out)
    assert error["schema"] == "promptdock.error.v1"
    assert error["error"].pop("do").endswith(" tasks list shows them")
    assert error["error"] == {"what": "there is no task 'x'", "why": "did you mean y?", "code": 2}
    assert err == ""


def test_on_a_terminal_an_error_ends_its_lines_between_words_and_a_command_stays_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _terminal(monkeypatch, 60)
    screen.complain(UsageError(TITLE, TITLE, f"promptdock notes add {TITLE}"))
    lines = capsys.readouterr().err.splitlines()
    words = " ".join(lines).split()
    assert max(map(len, lines[:-1])) <= 60 + len("\x1b[1;31m\x1b[0m") and len(lines) == 5
    assert [word for word in words if word in TITLE.split()] == TITLE.split() * 3
    assert lines[-1].endswith(TITLE)


def test_a_long_line_beside_the_data_ends_between_words_and_one_with_a_command_stays_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    words = "Backend asks for permission to merge what it made of the guest book into the branch main"
    command = f'answer with: promptdock ask "yes", "always" or "no" {"and so on " * 5}'.strip()
    screen.talk(f"… {words}\n{command}")
    told = capsys.readouterr().err.rstrip("\n").split("\n")
    assert " ".join(" ".join(told[:-1]).split()) == f"… {words}" and max(map(len, told[:-1])) <= 60
    assert told[-1].endswith(command.partition("promptdock")[2]), "so that it can be copied"
