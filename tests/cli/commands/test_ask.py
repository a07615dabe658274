"""One question, its progress and its answer."""

from __future__ import annotations

import asyncio
import json
import re
import time

import pytest

from gateways.cli.commands.messages.waiting import Limit
from tests.cli.person import PATIENCE, Person
from tests.support.clock import own_clock


def test_the_answer_goes_to_stdout_labelled_as_the_demos_and_progress_to_stderr(cluster: Person) -> None:
    done = cluster.types("ask", "Plan a login page", "--session", "plan")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[demo] The Planner answers:")
    assert "… [demo] Consulting with Planner" in done.stderr
    assert 0 < done.stderr.find("Consulting with Planner") < done.stderr.find("… planner answered")


def test_a_script_gets_one_document_from_text_on_stdin(cluster: Person) -> None:
    told = json.loads(cluster.does("ask", "-", "--json", "--session", "script", stdin="Hello\n"))
    assert told["schema"] == "promptdock.ask.v1"
    assert (told["status"], told["demo"]) == ("complete", True)


def test_a_question_back_is_shown_with_its_options_and_answered_by_the_next_ask(cluster: Person) -> None:
    done = cluster.types("ask", "Decide between tea and coffee", "--session", "choice")
    assert "1. tea" in done.stdout
    assert "2. coffee" in done.stdout
    assert 'ask "…" --session choice' in done.stderr
    ends = time.monotonic() + PATIENCE
    while "tea" not in cluster.does("inbox"):  # it is stored a moment after it was put
        assert time.monotonic() < ends
    told = cluster.is_refused(2, "ask", "9", "--session", "choice")
    assert "there are 1 to 2" in told and "2. coffee" in told
    assert "Noted: “coffee”" in cluster.does("ask", "2", "--session", "choice")


def test_a_task_ends_with_a_commit_that_can_be_looked_at(cluster: Person) -> None:
    told = cluster.does("ask", "Build a button on the page", "--session", "build")
    found = re.search(r"^2\. ([\w-]+): Page for a button on the page \(frontend\)", told, re.MULTILINE)
    assert found is not None, told
    name = found[1]
    ends = time.monotonic() + PATIENCE
    while cluster.reads("tasks", "show", name)["status"] != "COMPLETED":
        assert time.monotonic() < ends, cluster.does("tasks", "show", name)
    assert name in cluster.does("tasks")
    shown = cluster.does("tasks", "show", name)
    assert f"branch   promptdock/{name}" in shown and "check    exit 0  grep -q" in shown
    assert "+<h1>A button on the page</h1>" in cluster.does("tasks", "diff", name)


def test_a_task_that_nobody_knows_is_refused_with_where_to_look(cluster: Person) -> None:
    assert "tasks list" in cluster.is_refused(2, "tasks", "show", "nobody-knows")


def test_no_answer_in_time_is_exit_code_5_and_says_that_the_message_is_kept(cluster: Person) -> None:
    told = cluster.is_refused(5, "ask", "Plan a page", "--timeout", "0.001", "--session", "late")
    assert "will still be answered" in told


def test_what_is_only_sent_is_told_as_accepted(cluster: Person) -> None:
    done = cluster.types("ask", "Hello", "--timeout", "0", "--session", "sent")
    assert (done.returncode, done.stdout[:17]) == (0, "accepted: message")
    told = cluster.reads("ask", "Hello", "--timeout", "0", "--session", "sent")
    assert (told["schema"], told["outcome"]) == ("promptdock.accepted.v1", "accepted")


def test_an_answer_that_came_too_late_is_told_at_the_next_ask_and_once(cluster: Person) -> None:
    cluster.types("ask", "Plan a shed", "--timeout", "0", "--session", "missed")
    told, ends = "", time.monotonic() + PATIENCE
    while "While you were away: " not in told:
        assert time.monotonic() < ends, told
        told = cluster.types("ask", "Hello", "--session", "missed").stderr
    assert "While you were away: The Planner answers:" in told
    assert "away" not in cluster.types("ask", "Hello", "--session", "missed").stderr


def test_nothing_to_ask_and_a_name_that_is_none_are_refused(cluster: Person) -> None:
    assert "nothing to ask" in cluster.is_refused(2, "ask", "  ")
    assert "user_id" in cluster.is_refused(2, "ask", "Hello", "--user", "a\tb")


async def spent(limit: Limit, *steps: tuple[float, str]) -> float:
    """Seconds until it ends an endless wait, with what happens meanwhile at which second."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for second, step in steps:
        loop.call_at(began + second, getattr(limit, step))
    with pytest.raises(TimeoutError):
        async with limit:
            await asyncio.Event().wait()
    return round(loop.time() - began)


@own_clock
async def test_a_permission_that_nobody_here_can_give_is_awaited_for_a_minute() -> None:
    assert await spent(Limit(None, attended=False)) == 900
    assert await spent(Limit(None, attended=False), (100, "asked")) == 160
    assert await spent(Limit(None, attended=False), (100, "asked"), (130, "goes_on")) == 900
    assert await spent(Limit(None, attended=True), (100, "asked")) == 900
    assert await spent(Limit(300, attended=False), (100, "asked")) == 300
