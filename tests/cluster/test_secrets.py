"""The cluster's own key is neither told nor kept, whoever says it: a person, the model, or a tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, until
from tests.support.wire import Wire

KEY = "sk-ant-test-key-0000"
RULES: list[dict[str, Any]] = [
    {"user": "a plan", "system": "You are Planner", "steps": [{"text": f"Sign in with {KEY}, and go on."}]},
    {
        "user": "my key is",
        "steps": [
            {"tools": [{"name": "check_agent_status", "input": {"agent": KEY}}]},
            {"text": f"So your key is {KEY}.", "pace": 0.01},
        ],
    },
]


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site) -> None:
    place.up("chatter", "planner")


def test_a_key_that_a_person_pastes_goes_to_no_model_and_comes_back_to_nobody(
    wire: Wire, api: MessagesApi, place: Site
) -> None:
    said = wire.closing(wire.send(f"my key is {KEY}", user="ann", session_id="s-ann"))
    assert said["content"] == "So your key is [hidden]."
    assert "[hidden]" in json.dumps(api.requests) and KEY not in json.dumps(api.requests)
    until(lambda: "[hidden]" in stored(place, "messages"), what="the message in the Store")
    events = wire.redis.xrange(wire.names.stream("s-ann"))
    assert "[hidden]" in str(events) and KEY not in str(events)


def test_a_key_in_an_agents_answer_is_hidden_from_who_asked(wire: Wire) -> None:
    question = {"id": "q1", "from": "ann-client", "to": "planner", "type": "question"}
    wire.publish("agent:planner", question | {"payload": {"question": "a plan"}})
    told = wire.wait("agent:ann-client", lambda m: m["payload"].get("request_id") == "q1")
    assert "Sign in with [hidden]" in json.dumps(told)


def test_afterwards_it_is_in_no_table_and_no_log(wire: Wire, place: Site) -> None:
    tables = [row["name"] for row in place.query("select name from sqlite_master where type = 'table'")]
    wire.closing(wire.send("my key is not here", user="bob"))
    for last in ("not here", "Sign in with [hidden]"):  # of Chatter, and of Planner
        until(lambda last=last: last in stored(place, "messages"), what="all rows before it")  # type: ignore[misc]
    assert [table for table in tables if KEY in stored(place, table)] == []
    assert all(KEY not in worker.log.read_text() for worker in place.workers)


def stored(place: Site, table: str) -> str:
    """All rows of a table."""
    return json.dumps(place.query(f"select * from {table}"), default=str)
