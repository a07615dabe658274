"""What the provider was sent once is sent again byte for byte, so that its cache of a conversation holds."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from benchmarks.prefix import compare
from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, until
from tests.support.wire import Wire

NOW = "[Current date and time: "
LOOK = {"tools": [{"name": "check_agent_status", "input": {"agent": "planner"}}]}
PLAN = {"tools": [{"name": "consult_planner", "input": {"question": "How?"}}]}
RULES: list[dict[str, Any]] = [
    {"user": "look", "steps": [LOOK, {"text": "Nobody is there"}]},
    {"user": "dies", "steps": [LOOK, {"text": "It went on"}]},
    {"system": "You are Planner", "steps": [{"text": "So."}]},
    {"user": "plan", "steps": [PLAN, {"text": "Planned"}]},
    {
        "user": "git",
        "steps": [{"tools": [{"name": "load_tools", "input": {"category": "git"}}]}, {"text": "Here"}],
    },
    {"steps": [{"text": "Said"}]},
]


@pytest.fixture(scope="module", autouse=True)
def chatter(place: Site) -> None:
    """Chatter and a planner."""
    place.up("chatter", "planner")


def bodies(api: MessagesApi, wire: Wire, words: str, **more: Any) -> list[dict[str, Any]]:
    start = len(api.requests)
    assert wire.ask(words, **more)["status"] == "complete"
    return api.requests[start:]


def situations(message: dict[str, Any]) -> list[str]:
    return [block["text"] for block in message["content"] if block.get("text", "").startswith(NOW)]


def test_each_request_of_a_conversation_goes_on_from_the_one_before_it(wire: Wire, api: MessagesApi) -> None:
    sent = [body for words in ("hello", "look", "again") for body in bodies(api, wire, words, user="ann")]
    assert len(sent) == 4
    for earlier, later in pairwise(sent):
        assert (later["tools"], later["system"]) == (earlier["tools"], earlier["system"])
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
    assert NOW not in json.dumps(sent[-1]["system"])
    assert situations(sent[-1]["messages"][-1]), "the newest message says what time it is"
    assert [len(situations(message)) for message in sent[-1]["messages"][::2]] == [1, 1, 0, 1]


def test_what_is_asked_of_another_agent_ends_with_the_situation(wire: Wire, api: MessagesApi) -> None:
    asked = [b for b in bodies(api, wire, "plan", user="bob") if "You are Planner" in str(b["system"])]
    assert situations(asked[0]["messages"][-1]) and NOW not in json.dumps(asked[0]["system"])


def test_who_takes_a_turn_over_sends_what_was_sent_before(wire: Wire, api: MessagesApi, place: Site) -> None:
    place.workers[0].drain()
    (mortal,) = place.up("chatter", PROMPTDOCK_FAULT="answer stored")
    start = len(api.requests)
    first = wire.send("it dies", user="cat")
    mortal.ended()
    place.up("chatter")
    assert wire.closing(first)["content"] == "It went on"
    one, two = api.requests[start:]
    assert two["messages"][: len(one["messages"])] == one["messages"]
    noted = "select description from turn_steps where session_id = 'user:cat' and kind = 'situation'"
    (row,) = until(lambda: place.query(noted), what="the situation in the journal")
    assert [text[:200] for text in situations(two["messages"][0])] == [row["description"]]


def test_who_joins_another_project_and_loaded_tools_void_nothing_of_what_came_before(
    wire: Wire, api: MessagesApi, place: Site
) -> None:
    sent = bodies(api, wire, "show git", user="dan")[1:]
    place.up("researcher")
    sent += bodies(api, wire, "who is here?", user="dan")
    wire.command("create_project", user="dan", name="Shop")
    wire.command("set_active_project", user="dan", project_id="shop")
    sent += bodies(api, wire, "and now?", user="dan")
    sent += bodies(api, wire, "go on", user="dan")
    assert len(sent) == 4
    for step in compare(sent):
        assert step.share >= 0.95
    newest = [situations(body["messages"][-1])[-1] for body in sent[1:]]
    assert ["- researcher" in text for text in newest] == [True, False, False], "it is told once"
    assert ["`shop`" in text for text in newest] == [False, True, True]
    assert "researcher:" not in json.dumps(sent[-1]["system"])
