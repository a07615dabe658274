"""The mark of foreign text: it outlives the turn that read, goes along with what is made, and a person takes it off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire
from tests.tools.ground import repository


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


TOLD = {"text": "{{result}}"}
DELETE = [call("delete_note", project_id="default", title="how"), {"text": "{{result.why}}"}]
NOTE = {"project_id": "default", "title": "how", "content": "# How\n\nAs the README says."}
RULES: list[dict[str, Any]] = [
    {"user": "read it", "steps": [call("read_file", path="library/README.md"), {"text": "I have read it."}]},
    {"user": "go on", "steps": DELETE},
    {"user": "note it", "steps": [call("write_note", **NOTE), {"text": "Noted."}]},
    {"user": "what is noted", "steps": [call("read_note", project_id="default", title="how"), TOLD]},
    {"user": "make a task", "steps": [call("create_task", title="Copy it", description="x"), TOLD]},
    {"user": "trust yourself", "steps": [call("trust", what="conversation"), {"text": "{{result.why}}"}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site, wire: Wire, tmp_path_factory: pytest.TempPathFactory) -> list[Worker]:
    """Chatter, and a repository whose README others wrote."""
    path: Path = repository(tmp_path_factory.mktemp("checkout") / "library", {"README.md": "# Hi\n"}).path
    running = place.up("chatter")
    added = wire.command("add_repo", source="link", path=str(path), name="library", kind="backend")
    assert added["status"] == "complete", added
    return running


def _asked(wire: Wire, user: str) -> str:
    """Why the person is asked for permission when it goes on; they say no."""
    start = len(wire.heard)
    id = wire.send("go on", user)
    asked: Message = wire.wait(
        "chatter-output",
        lambda said: said["status"] == "awaiting_approval" and said["user_id"] == user,
        start=start,
    )
    wire.send("no", user)
    wire.closing(id)
    return str(asked["approval"]["why"])


def _row(place: Site, sql: str) -> dict[str, Any]:
    found = until(lambda: place.query(sql), what=sql)
    return dict(json.loads(found[0]["origin"]))


def test_what_a_turn_read_is_told_to_who_is_asked_in_the_next_until_they_trust_it(wire: Wire) -> None:
    assert "read" not in _asked(wire, "ada").replace("standard", "")
    wire.ask("read it", "ada")
    assert "read_file was read before, in this conversation" in _asked(wire, "ada")
    assert "read_file was read before, in this conversation" in _asked(wire, "ada")
    told = wire.closing(
        wire.send(user="ada", type="command", tool="trust", arguments={}, session_id="user:ada")
    )
    assert told["result"] == {"trusted": "conversation", "by": "ada"}
    assert "read_file" not in _asked(wire, "ada")


def test_another_conversation_begins_without_a_mark(wire: Wire) -> None:
    wire.ask("read it", "bob")
    assert "read_file" not in _asked(wire, "eve")


def test_a_model_cannot_say_that_it_trusts(wire: Wire) -> None:
    wire.ask("read it", "mallory")
    said = wire.ask("trust yourself", "mallory")
    assert said["content"] == "trust is not among the tools of chatter"
    assert "read_file was read before" in _asked(wire, "mallory")


def test_the_mark_goes_along_with_a_note_to_another_conversation_and_a_person_takes_it_off(
    wire: Wire, place: Site
) -> None:
    wire.ask("read it", "ann")
    wire.ask("note it", "ann")
    made = _row(place, "select origin from notes where slug = 'how'")
    assert (made["by"], made["user"], made["foreign"]) == ("chatter", "ann", "read_file")
    assert '"made_after_reading": "read_file"' in wire.ask("what is noted", "zoe")["content"]
    assert "read" in _asked(wire, "zoe").replace("standard", "")
    told = wire.command("trust", user="ann", what="note", name="how", project_id="default")
    assert told["result"]["rows"] == 1
    assert "made_after_reading" not in wire.ask("what is noted", "kim")["content"]


def test_the_mark_goes_along_with_a_task_and_is_told_with_it(wire: Wire, place: Site) -> None:
    wire.ask("read it", "tom")
    told = json.loads(wire.ask("make a task", "tom")["content"])
    made = _row(place, "select origin from tasks where title = 'Copy it'")
    assert (made["by"], made["user"], made["session"], made["foreign"]) == (
        *("chatter", "tom", "user:tom"),
        "read_file",
    )
    shown = wire.command("get_task", user="tom", task_id=told["created"])["result"]
    assert shown["made_after_reading"] == "read_file"


def test_a_conversation_that_the_store_recalls_bears_its_mark(wire: Wire, place: Site) -> None:
    wire.ask("read it", "old")
    until(
        lambda: any(
            json.loads(row["origin"]).get("foreign") == "read_file"
            for row in place.query("select origin from sessions where key = 'user:old'")
        ),
        what="the session's row",
    )
    prefix = place.names.queue("chatter")
    until(lambda: not wire.redis.xlen(f"{prefix}archive"), what="the Store having all")
    assert wire.redis.delete(f"{prefix}window:user:old") == 1
    assert "read_file was read before, in this conversation" in _asked(wire, "old")
