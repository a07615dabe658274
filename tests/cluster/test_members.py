"""Agents that are rows: made in a conversation, they answer their channel and others at once, and can be destroyed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire
from tests.tools.ground import repository

SETTINGS = {"PERMISSION_PROFILE": "open"}
PIRATE = "You are a pirate."
POET = "You are Bard, who answers in verse."


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": tool, "input": arguments}]}


MAKE = call("create_agent", name="bard", system_prompt=POET, description="writes poems", channel="test:poems")
TOLD = {"text": "{{result}}"}
RULES: list[dict[str, Any]] = [
    {
        "user": "# Write notes",
        "steps": [call("create_file", path="NOTES.md", content="Notes\n"), {"text": "I wrote them."}],
    },
    {"system": "You are a pirate", "steps": [{"text": "Arr, {{user}}"}]},
    {"system": "I sing now", "steps": [{"text": "La la: {{user}}"}]},
    {
        "system": POET,
        "user": "write it down",
        "steps": [call("create_file", path="a.md", content="# A"), TOLD],
    },
    {
        "system": POET,
        "user": "sing",
        "steps": [call("self_edit_system_prompt", new_prompt="I sing now."), TOLD],
    },
    {"system": POET, "steps": [{"text": "O {{user}}"}]},
    {"user": "make a bard", "steps": [MAKE, TOLD]},
    {"user": "ask the bard", "steps": [call("consult_agent", agent="bard", question="a rhyme"), TOLD]},
    {"steps": [{"text": "Chatter says {{user}}"}]},
]


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site) -> list[Worker]:
    return place.up("chatter", "host")


@pytest.fixture(scope="module")
def bard(wire: Wire, workers: list[Worker]) -> str:
    """What was said when the poet was made."""
    assert workers
    return str(wire.ask("make a bard")["content"])


def run(wire: Wire, tool: str, /, **arguments: Any) -> Message:
    """A tool as a person's own command; its result."""
    said = wire.closing(wire.send(user="test", type="command", tool=tool, arguments=arguments))
    assert said["status"] == "complete", said
    return dict(said["result"])


def made(wire: Wire, name: str, /, **more: Any) -> Message:
    return run(wire, "create_agent", name=name, **more)


def online(wire: Wire, name: str) -> Message:
    """The first heartbeat of an agent."""
    return wire.wait("agent:status", lambda card: card["agent"] == name and card["status"] != "offline")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_an_agent_made_in_a_conversation_answers_on_its_channel_and_to_others_a_second_later(
    wire: Wire, place: Site, bard: str
) -> None:
    assert "bard" in bard
    said = wire.ask("rose", user="ada", channel="test:poems")
    assert (said["content"], said["agent"]) == ("O [from ada]: rose", "bard")
    assert said["session_id"] == "on:test:poems:ada"
    began = time.monotonic()
    online(wire, "bard")
    assert time.monotonic() - began < 10
    assert "O " in wire.ask("ask the bard")["content"]
    folder = place.home / "agents" / "bard" / "workspace"
    assert "writes poems" in (folder / "README.md").read_text()
    assert git(folder, "log", "--format=%s").strip() == "The workspace of bard"
    plain = wire.ask("rose", user="ada")
    assert "agent" not in plain and plain["content"] == "Chatter says [from ada]: rose"


@pytest.mark.usefixtures("bard")
def test_its_files_lie_in_its_own_workspace(wire: Wire, place: Site) -> None:
    said = wire.ask("write it down", user="ada", channel="test:poems")
    assert "workspace/a.md" in said["content"], said
    assert (place.home / "agents" / "bard" / "workspace" / "a.md").read_text() == "# A"


def test_it_edits_its_own_prompt_and_the_next_turn_has_it(wire: Wire) -> None:
    made(wire, "singer", system_prompt=POET)
    channel = "promptdock:singer"
    assert "next turn" in wire.ask("sing", user="ada", channel=channel)["content"]
    assert wire.ask("moon", user="ada", channel=channel)["content"] == "La la: [from ada]: moon"


def test_the_words_before_every_prompt_are_those_that_people_set(wire: Wire, api: MessagesApi) -> None:
    made(wire, "whisper", system_prompt=POET)
    run(wire, "set_global_prompt", text="Speak softly.")
    for channel in (None, "promptdock:whisper"):

        def soft(channel: str | None = channel) -> bool:
            wire.ask("moon", user="ada", channel=channel)
            return "Speak softly." in json.dumps(api.requests[-1]["system"])

        until(soft, what="the new words")
    shown = run(wire, "show_prompt", agent_id="whisper")
    assert [part["name"] for part in shown["parts"][:2]] == ["global", "persona"]
    assert shown["sent"].startswith(f"Speak softly.\n\n{POET}")


def test_an_edited_profile_holds_from_the_next_turn_on(wire: Wire, api: MessagesApi) -> None:
    made(wire, "scribe", system_prompt=POET)
    online(wire, "scribe")
    sections = [
        {"name": "persona", "text": "You are a pirate."},
        {"name": "task", "text": "Sail.", "enabled": False},
    ]
    run(wire, "configure_agent", agent_id="scribe", sections=sections)
    assert wire.ask("hello", user="ada", channel="promptdock:scribe")["content"].startswith("Arr")
    asked = {
        "id": "q-scribe",
        "from": "tester",
        "to": "scribe",
        "type": "question",
        "payload": {"question": "hi"},
    }
    wire.publish("agent:scribe", asked)
    answer = wire.wait("agent:tester", lambda said: said["payload"].get("request_id") == "q-scribe")
    assert answer["payload"]["answer"].startswith("Arr")
    system = json.dumps(api.requests[-1]["system"])
    assert "pirate" in system and "Sail" not in system


def test_a_message_names_the_profile_of_its_turn_and_one_that_is_none_is_refused_in_words(wire: Wire) -> None:
    run(
        wire,
        "create_profile",
        id="pirate",
        name="Pirate",
        sections=[{"name": "persona", "text": "You are a pirate."}],
    )
    said = wire.ask("hello", user="eve", profile_id="pirate")
    assert said["content"].startswith("Arr") and "agent" not in said
    assert wire.ask("hello", user="eve")["content"].startswith("Chatter says")
    assert wire.ask("hello", user="eve", profile_id="default")["content"].startswith("Chatter says")
    wire.command("choose_profile", user="eve", profile_id="pirate")
    assert wire.ask("hello", user="eve")["content"].startswith("Arr")
    assert wire.ask("hello", user="eve", profile_id="default")["content"].startswith("Chatter says")
    refused = wire.command("choose_profile", user="eve", profile_id="nobody")
    assert refused["status"] == "error" and "no profile" in refused["content"]
    wire.command("choose_profile", user="eve")
    assert wire.ask("hello", user="eve")["content"].startswith("Chatter says")
    missing = wire.ask("hello", user="eve", profile_id="pirat")
    assert (
        missing["status"] == "error" and "no profile" in missing["content"] and "pirate" in missing["content"]
    )


def test_the_profile_of_a_project_answers_what_is_said_of_it_where_the_message_names_none(wire: Wire) -> None:
    run(wire, "create_project", name="Ships")
    run(wire, "create_profile", id="captain", name="Captain", sections=[{"name": "persona", "text": PIRATE}])
    run(wire, "edit_project", project_id="ships", default_profile_id="captain")
    assert wire.ask("hello", user="fay", project_id="ships")["content"].startswith("Arr")
    assert wire.ask("hello", user="fay")["content"].startswith("Chatter says")
    run(wire, "set_active_project", project_id="ships")  # in the conversation of whoever commands
    assert wire.ask("hello", user="test")["content"].startswith("Arr")
    plain = wire.ask("hello", user="test", profile_id="default")
    assert plain["content"].startswith("Chatter says")
    run(wire, "edit_project", project_id="ships", default_profile_id=None)
    assert wire.ask("hello", user="test")["content"].startswith("Chatter says")
    run(wire, "set_active_project", project_id=None)


def test_asking_an_agent_that_is_none_begins_no_conversation(wire: Wire, place: Site) -> None:
    assert wire.ask("x", user="gus", channel="promptdock:nobody")["status"] == "error"
    wire.ask("hello", user="gus")
    kept = "select key from sessions where user_id = 'gus'"
    until(lambda: place.query(kept), what="the other conversation")
    assert [row["key"] for row in place.query(kept)] == ["user:gus"]


def test_a_channel_of_a_project_sets_the_project_of_what_is_said_there(wire: Wire, api: MessagesApi) -> None:
    assert wire.ask("x", user="ada", channel="test:elsewhere")["content"].startswith("Chatter says")
    assert "no agent called 'nobody'" in wire.ask("x", user="ada", channel="promptdock:nobody")["content"]
    run(wire, "create_project", name="Boats")
    run(wire, "bind_channel", channel="test:boats", project_id="boats")
    wire.ask("hello", user="ada", channel="test:boats")
    assert "ACTIVE PROJECT: `boats`" in json.dumps(api.requests[-1]["messages"])


def test_a_destroyed_agent_works_no_more_and_its_files_stay_where_that_is_asked(
    wire: Wire, place: Site
) -> None:
    made(wire, "mayfly", system_prompt=POET)
    online(wire, "mayfly")
    folder = place.home / "agents" / "mayfly" / "workspace"
    told = run(wire, "destroy_agent", agent_id="mayfly")
    assert (told["files_kept"], told["channels"]) == (True, ["promptdock:mayfly"])
    wire.wait("agent:status", lambda card: card["agent"] == "mayfly" and card["status"] == "offline")
    assert folder.is_dir()
    (row,) = place.query("select destroyed_at from agents where name = 'mayfly'")
    assert row["destroyed_at"]
    listed = {one["id"]: one["state"] for one in run(wire, "list_agents")["agents"]}
    assert listed["mayfly"] == "destroyed"
    assert "was destroyed" in wire.ask("x", user="ada", channel="promptdock:mayfly")["content"]
    again = made(wire, "mayfly")
    assert again["workspace"] == str(folder), "it is found again"
    assert wire.ask("x", user="ada", channel="promptdock:mayfly")["content"].startswith("O ")
    run(wire, "destroy_agent", agent_id="mayfly", keep_files=False)
    assert not folder.parent.exists()


def test_one_runs_alone_in_a_process_of_its_own(wire: Wire, place: Site) -> None:
    made(wire, "loner", system_prompt=POET)
    (alone,) = place.up("loner")
    assert alone.drain() == 0
    missing = place.start("nobody-here")
    missing.process.wait(30)
    assert "No module named" in missing.tail() or "there is no agent" in missing.tail()


@pytest.mark.usefixtures("bard")
def test_a_profile_that_somebody_broke_keeps_the_agent_as_it_was_and_is_told(
    wire: Wire, place: Site, workers: list[Worker]
) -> None:
    made(wire, "glass", system_prompt=POET)
    online(wire, "glass")
    with sqlite3.connect(place.home / "promptdock.db", timeout=30) as db:
        db.execute("update profiles set permissions = '{\"deny\": [\"(\"]}' where slug = 'glass'")
    said = wire.ask("hello", user="ada", channel="promptdock:glass")
    assert said["status"] == "error" and "the profile 'glass' cannot be used" in said["content"]
    workers[1].drain()
    (again,) = place.up("host")
    assert "cannot start" in str(again.says("glass cannot start")["event"])
    until(lambda: "bard agent starting" in again.tail().lower(), what="the others to run")


def test_a_coding_agent_made_of_data_alone_is_given_a_task_and_does_it(
    wire: Wire, place: Site, tmp_path: Path
) -> None:
    checkout = repository(tmp_path / "shop", {"README.md": "# Shop\n"}).path
    run(wire, "add_repo", source="link", path=str(checkout), name="shop", kind="both")
    made(wire, "smith", kind="coding", repo_id="shop", system_prompt="You are Smith.", tools=["create_file"])
    online(wire, "smith")
    task = run(
        wire, "create_task", title="Notes", description="# Write notes", repo_id="shop", profile_id="smith"
    )
    slug = str(task["created"])
    rows = until(
        lambda: place.query("select * from tasks where slug = ? and status = 'COMPLETED'", slug),
        what="the end of its task",
    )
    assert rows[0]["assignee"] == "smith"
    assert git(checkout, "show", f"promptdock/{slug}:NOTES.md") == "Notes\n"
