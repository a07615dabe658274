"""What an agent asks on its channel is put to the person there, and goes on in the turn that asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire

POET = "You are Bard, who answers in verse."


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": tool, "input": arguments}]}


TOLD = {"text": "{{result}}"}
RULES: list[dict[str, Any]] = [
    {"system": POET, "user": "write it", "steps": [call("bash", command="echo hi > said.txt"), TOLD]},
    {"user": "make a bard", "steps": [call("create_agent", name="bard", system_prompt=POET), TOLD]},
    {"steps": [{"text": "Chatter says {{user}}"}]},
]


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site) -> list[Worker]:
    """Two replicas of Chatter: the answer may come to the other one."""
    return place.up("chatter", "chatter", "host")


def allowed(wire: Wire, message: str) -> tuple[Message, Message]:
    """The question that a message led to, and the closing output after a yes."""
    asked = wire.wait(
        "chatter-output",
        lambda said: said["status"] == "awaiting_approval" and said.get("in_reply_to") == message,
    )
    answer = {"approval_id": asked["approval"]["id"], "decision": "allow_once"}
    wire.send(user=asked["user_id"], type="approval", session_id=asked["session_id"], **answer)
    return asked, wire.closing(message)


def test_an_agent_is_made_with_a_yes_and_asks_for_its_own_commands(wire: Wire, place: Site) -> None:
    asked, done = allowed(wire, wire.send("make a bard", user="ada"))
    assert asked["approval"]["tool"] == "create_agent" and "bard" in done["content"]
    asked, done = allowed(wire, wire.send("write it", user="ada", channel="promptdock:bard"))
    assert (asked["approval"]["tool"], asked["approval"]["agent"]) == ("bash", "bard")
    assert done["agent"] == "bard" and '"exit_code": 0' in done["content"]
    assert (place.home / "agents" / "bard" / "workspace" / "said.txt").read_text() == "hi\n"
    sql = "select agent, person from audit_log where action like 'tool:bash%'"
    (row,) = until(lambda: place.query(sql), what="the audit of it")
    assert (row["agent"], row["person"]) == ("bard", "ada")
