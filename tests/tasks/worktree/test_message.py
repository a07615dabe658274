"""What commits of tasks say: a subject from the task's own words, and what was asked."""

from __future__ import annotations

import pytest

from shared.tasks.worktree import message


@pytest.mark.parametrize(
    ("text", "given", "wanted"),
    [
        ("# Add a greeting\n\nWrite it.", "", "Add a greeting"),
        (
            "# Goal\n\nWrite `greet.py` with a function. It says hello.",
            "",
            "Write `greet.py` with a function",
        ),
        ("# Goal\n\nWrite it.", "Goal", "Write it"),
        ("# Goal: Add a greeting\n\nText", "", "Add a greeting"),
        ("# Task\n\n## Context\n\n- First thing\n- Second", "Task", "First thing"),
        ("## Goal and context\n\n", "", "Work of a task"),
        ("# Whatever\n", "Add login", "Add login"),
        ("**Make it green.**", "", "Make it green"),
        ("", "Goal", "Goal"),
    ],
)
def test_a_task_is_called_after_what_is_to_be_done(text: str, given: str, wanted: str) -> None:
    assert message.title(text, given) == wanted


def test_a_subject_is_one_short_line_cut_between_words() -> None:
    assert message.subject("Add\n a  greeting") == "Add a greeting"
    long = message.subject("Add a greeting " * 20)
    assert len(long) <= 72 and long.endswith("Add a …")
    assert len(message.subject("x" * 200)) <= 72


def test_a_commit_says_what_was_asked_and_how_it_was_checked() -> None:
    asked = "# Add a greeting\n\nWrite greet.py.\n\n## Done before\n\n- nothing"
    told = message.commit("Add a greeting", "It greets now.", asked, ["make test"])
    assert told == (
        "Add a greeting\n\nIt greets now.\n\nAsked for:\n\nWrite greet.py.\n\nChecked with:\n\n- make test\n"
    )
    assert message.commit("Add a greeting", "", "# Add a greeting") == "Add a greeting\n"


def test_prose_is_broken_and_code_and_lists_are_not() -> None:
    line = "word " * 30
    told = message.commit("x", f"{line}\n- {line}\n```\n{line}\n```\n    {line}", "")
    lines = told.splitlines()
    assert max(map(len, lines[2:5])) <= 72 and lines[5].startswith("- word") and len(lines[5]) > 100
    assert line in lines and f"    {line}".rstrip() in lines[-1]


def test_what_was_asked_at_length_is_cut() -> None:
    assert len(message.commit("x", "y " * 5000, "z " * 5000)) < 4000
