"""Budgets with real processes: at the limit one call without tools, then the person is asked what is to be."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, until
from tests.support.wire import Message, Wire

# Each of these calls costs 57 cents.
DEAR = {"input_tokens": 190_000, "output_tokens": 1}
SETTINGS = {"PROMPTDOCK_MODEL": "claude-sonnet-4-5", "BUDGET_SESSION": "1"}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}], "usage": DEAR}


RULES: list[dict[str, Any]] = [
    {"user": "# Write forever", "steps": [
        call("create_file", path="a.txt", content="a\n"), call("create_file", path="b.txt", content="b\n"),
        {"text": "Handed back.", "usage": DEAR}]},
    {"user": "many steps", "steps": [call("list_tasks"), call("get_status"),
        {"text": "Until now I listed.", "usage": DEAR}]},
    {"user": "hello", "steps": [{"text": "Hello."}]},
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site, wire: Wire, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Chatter and Backend, with a repository."""
    folder: Path = tmp_path_factory.mktemp("repository") / "shop"
    folder.mkdir()
    (folder / "README.md").write_text("# Shop\n")
    author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *author, *command], cwd=folder, check=True)
    place.up("chatter", "backend")
    wire.command("create_project", name="Mill")
    told = wire.command(
        "add_repo", project_id="mill", source="link", path=str(folder), name="shop", kind="both"
    )
    assert told["status"] == "complete", told


def calls(api: MessagesApi, words: str) -> list[dict[str, Any]]:
    return [body for body in api.requests if words in json.dumps(body["messages"])]


def test_a_spent_conversation_is_handed_back_without_tools_and_the_person_decides(
    wire: Wire, api: MessagesApi
) -> None:
    said = wire.ask("many steps", user="ann", session_id="money", shared=True)
    assert (said["status"], said["options"]) == ("awaiting_input", ["raise", "split", "stop"])
    assert "Until now I listed." in said["content"] and "($1.00) is spent" in said["content"]
    bought = calls(api, "many steps")
    assert [bool(body.get("tools")) for body in bought] == [True, True, False]
    # nothing more is bought until the person decides
    said = wire.ask("hello", user="ann", session_id="money")
    assert "Nothing was begun" in said["content"]
    assert not calls(api, ": hello")
    # and nobody else decides
    said = wire.ask("raise", user="eve", session_id="money")
    assert (said["status"], "cannot decide" in said["content"]) == ("error", True)
    said = wire.ask("raise", user="ann", session_id="money")
    assert said["status"] == "complete"
    assert calls(api, "The person raised the budget of the session by $1.00")


def test_a_person_who_says_stop_is_asked_no_more_and_nothing_is_bought(wire: Wire, api: MessagesApi) -> None:
    assert wire.ask("many steps", user="dan", session_id="short")["status"] == "awaiting_input"
    said = wire.ask("stop", user="dan", session_id="short")
    assert (said["status"], said["content"].startswith("Stopped.")) == ("complete", True)
    assert not calls(api, ": stop")


def test_other_conversations_have_budgets_of_their_own(wire: Wire) -> None:
    assert wire.ask("hello", user="bob", session_id="other")["content"] == "Hello."


def paused(wire: Wire, start: int) -> Message:
    return wire.wait(
        "chatter-output", lambda said: said["status"] == "awaiting_input" and "is paused" in said["content"],
        90.0,
        start=start,
    )  # fmt: skip


def test_a_task_that_spent_its_project_s_money_is_paused_and_goes_on_when_it_is_raised(
    wire: Wire, place: Site, api: MessagesApi
) -> None:
    wire.command("edit_project", project_id="mill", budget_limit=1)
    start = len(wire.heard)
    made = wire.command(
        "create_task", user="cleo", title="Write forever", description="# Write forever", project_id="mill"
    )
    slug = made["result"]["created"]
    said = paused(wire, start)
    assert slug in said["content"] and said["options"] == ["raise", "split", "stop"]

    def row() -> dict[str, Any]:
        return place.query("select * from tasks where slug = ?", slug)[0]

    until(lambda: row()["status"] == "PAUSED", what="the pause", told=row)
    assert row()["resume_at"] is not None
    (usage,) = place.query("select sum(cost) as cost from token_usage where task_id = ?", row()["id"])
    assert usage["cost"] > 1
    wire.ask("raise", user="cleo", session_id=said["session_id"])
    until(
        lambda: row()["status"] in ("COMPLETED", "PAUSED") and row()["epoch"] >> 32 == 2,
        90.0,
        what="the rest",
        told=lambda: (row(), wire.heard[-9:]),
    )
    (project,) = place.query("select budget from projects where slug = 'mill'")
    assert project["budget"] == 2
