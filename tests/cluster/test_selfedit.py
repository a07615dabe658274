"""An agent that changes itself: with permission, from its next turn, on every replica, and for nobody who may not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire

SETTINGS = {"APPROVER_ROLES": "lead"}
NEW = "You are Chatter, and you answer in rhyme."


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


MAKE = call("create_task", title="Old work")
DELETE = call("delete_task", task_id="{{result.created}}")
TOLD = {"text": "{{result}}"}
RULES: list[dict[str, Any]] = [
    {"user": "rhyme", "steps": [call("self_edit_system_prompt", new_prompt=NEW), TOLD]},
    {"user": "open up", "steps": [call("self_edit_permissions", new_profile="open"), TOLD]},
    {"user": "as you were", "steps": [call("self_edit_permissions", new_profile=""), TOLD]},
    {"user": "lock", "steps": [call("self_edit_permissions", new_profile="locked"), TOLD]},
    {
        "user": "clean and open",
        "steps": [MAKE, DELETE, call("self_edit_permissions", new_profile="open"), TOLD],
    },
    {"user": "delete", "steps": [MAKE, DELETE, TOLD]},
    {"steps": [{"text": "You said: {{user}}"}]},
]


@pytest.fixture(scope="module", autouse=True)
def chatters(place: Site) -> list[Worker]:
    """Two replicas of Chatter, under the permissions that it starts with."""
    return place.up("chatter", "chatter")


def question(wire: Wire, user: str, start: int = 0) -> Message:
    return wire.wait(
        "chatter-output",
        lambda said: said["status"] == "awaiting_approval" and said["user_id"] == user,
        start=start,
    )


def allow(wire: Wire, user: str, start: int = 0, **more: Any) -> Message:
    """Yes to the open question; the closing output of its turn."""
    asked = question(wire, user, start)["approval"]["id"]
    return wire.closing(
        wire.send(user=user, type="approval", approval_id=asked, decision="allow_once", **more)
    )


def prompts(wire: Wire, api: MessagesApi) -> set[bool]:
    """Whether the new prompt is used, over turns of several sessions, which both replicas take."""
    found = set()
    for number in range(4):
        wire.ask("hello", user=f"other{number}")
        found.add(NEW in json.dumps(api.requests[-1]["system"], ensure_ascii=False))
    return found


def test_a_new_prompt_is_asked_for_audited_and_used_by_every_replica_at_once(
    wire: Wire, api: MessagesApi, place: Site
) -> None:
    wire.send("rhyme", user="ada")
    asked = question(wire, "ada")["approval"]
    assert asked["tool"] == "self_edit_system_prompt" and asked["arguments"] == {"new_prompt": NEW}
    assert prompts(wire, api) == {False}, "nothing changes before the yes"
    assert "next turn" in allow(wire, "ada")["content"]
    assert prompts(wire, api) == {True}
    sql = "select action, person from audit_log where action like 'tool:self_edit%'"
    (row,) = until(lambda: place.query(sql), what="the audit of it")
    assert row["person"] == "ada" and row["action"].startswith("tool:self_edit_system_prompt:prompt:")
    (kept,) = place.query("select slug, version from profiles")
    assert (kept["slug"], kept["version"]) == ("self:chatter", 2)


def test_who_has_no_role_is_refused_at_once_and_who_has_it_is_asked(wire: Wire) -> None:
    said = wire.ask("open up", user="bob")
    assert "bob may not grant this" in said["content"]
    assert not [out for out in wire.outputs("bob") if out["status"] == "awaiting_approval"]
    claimed = wire.ask("open up", user="bob", roles=["guest"])
    assert "may not grant" in claimed["content"]
    start = len(wire.heard)
    wire.send("open up", user="lea", roles=["lead"])
    assert "next turn" in allow(wire, "lea", start)["content"]
    assert "deleted" in wire.ask("delete", user="carl")["content"], "nothing is asked for any more"
    assert "next turn" in wire.ask("as you were", user="carl")["content"], "less needs no role"
    start = len(wire.heard)
    wire.send("delete", user="carl")
    question(wire, "carl", start)
    wire.closing(wire.send(user="carl", type="stop"))


def test_words_of_another_that_join_the_turn_take_the_role_away(wire: Wire) -> None:
    start, session = len(wire.heard), "shared"
    first = wire.send("clean and open", user="lea", roles=["lead"], session_id=session, shared=True)
    asked = question(wire, "lea", start)["approval"]["id"]
    joined = wire.send("and open up, please", user="mallory", type="amend", session_id=session)
    wire.ask("hello", user="beside")  # what was published before this is taken in
    answer = {"type": "approval", "approval_id": asked, "decision": "allow_once"}
    said = wire.closing(wire.send(user="lea", roles=["lead"], session_id=session, **answer))
    assert {first, joined} <= set(said["answers"])
    assert "may not grant" in said["content"], said


def test_a_turn_that_runs_keeps_its_permissions_and_the_next_one_has_the_new(wire: Wire, place: Site) -> None:
    start = len(wire.heard)
    wire.send("delete", user="dora")
    question(wire, "dora", start)
    wire.send("lock", user="emil")
    assert "next turn" in allow(wire, "emil", start)["content"]
    assert "deleted" in allow(wire, "dora", start)["content"], "it was asked for, and allowed, before"
    locked = wire.ask("delete", user="dora")["content"]
    assert "not among the tools" in locked or "no rule of the permissions 'locked'" in locked, locked
    undo: dict[str, Any] = {
        "type": "command",
        "tool": "delete_profile",
        "arguments": {"profile_id": "self:chatter"},
    }
    assert wire.closing(wire.send(user="lea", roles=["lead"], **undo))["status"] == "error", "it is locked"
    for worker in place.workers:
        worker.kill()
    place.up("chatter", PERMISSION_PROFILE="standard")
    assert "may not grant" in str(wire.closing(wire.send(user="emil", **undo))["result"])
    undone = wire.closing(wire.send(user="lea", roles=["lead"], **undo))
    assert undone["result"].get("deleted") == "self:chatter", undone
