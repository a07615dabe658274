"""How a turn ends: with one event, always; and what the conversation keeps of one that gave no answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import words
from tests.support.processes import Site, until
from tests.support.wire import Message, Wire

LOOK = {"name": "check_agent_status", "input": {"agent": "planner"}}
ASK = {
    "name": "escalate_to_human",
    "input": {"question": "Which one?", "options": ["a", "b"], "context": "Both do."},
}
RULES: list[dict[str, Any]] = [
    {"user": "stopped late", "steps": [{"text": "I look.", "tools": [LOOK]}, {"text": "x", "hold": "never"}]},
    {"user": "refused later", "steps": [{"tools": [LOOK]}, {"status": 400, "message": "not that"}]},
    {"user": "no key later", "steps": [{"tools": [LOOK]}, {"status": 401, "message": "not yours"}]},
    {"user": "decline", "steps": [{"text": "", "stop": "refusal"}]},
    {"user": "choose", "steps": [{"text": "I ask.", "tools": [ASK]}]},
    {"user": "silent", "steps": [{"tools": [LOOK]}, {"text": ""}]},
    {"user": "cut once", "steps": [{"text": "All of it", "tries": [{"text": "All", "fault": "cut"}]}]},
    {"user": "dies", "steps": [{"text": "First this. ", "tools": [LOOK]}, {"text": "Then that."}]},
    {"steps": [{"text": "So it is"}]},
]


@pytest.fixture(scope="module", autouse=True)
def chatter(place: Site) -> None:
    """Chatter alone."""
    place.up("chatter")


def events(wire: Wire, user: str) -> list[Message]:
    return wire.on(f"events:user:{user}")


def ends(wire: Wire, user: str, turn: str) -> Message:
    """The one event that closed a turn."""

    def closed() -> list[Message]:
        found = [e for e in events(wire, user) if e["event"] in ("done", "error")]
        return [event for event in found if event["turn_id"] == turn]

    (event,) = until(closed, what="the end of the turn")
    return event


def joined(wire: Wire, user: str) -> str:
    """The chunks of a session's only turn, as the contract says how to join them."""
    parts: dict[int, str] = {}
    for event in events(wire, user):
        if event["event"] == "start":
            parts = dict(enumerate(event.get("said", []), 1))
        elif event["event"] == "waiting":
            parts.pop(event["part"], None)
        elif event["event"] == "chunk":
            parts[event["part"]] = parts.get(event["part"], "") + event["content"]
    return "".join(parts[part] for part in sorted(parts))


def history(api: MessagesApi, wire: Wire, user: str) -> list[Message]:
    """What the next turn is sent of those before it."""
    assert wire.ask("and now?", user=user)["content"] == "So it is"
    return list(api.requests[-1]["messages"])


def test_a_stopped_turn_stays_with_its_question_and_what_it_did(wire: Wire, api: MessagesApi) -> None:
    start = len(api.requests)
    sent = wire.send("stopped late", user="ann")
    until(lambda: len(api.requests) > start + 1, what="the second call")
    wire.closing(wire.send(user="ann", type="stop"))
    end = ends(wire, "ann", sent)
    assert (end["event"], end["status"], end["stopped"]) == ("done", "complete", True)
    told = history(api, wire, "ann")
    assert "stopped late" in words(told[0]["content"])
    assert [block["type"] for block in told[1]["content"]] == ["text", "tool_use"]
    assert json.loads(told[2]["content"][0]["content"])["agent"] == "planner"
    assert words(told[3]["content"]).startswith("[This turn was ended: stopped by the person")
    assert len(told) == 5


def test_a_turn_that_failed_stays_with_what_was_paid_for(wire: Wire, api: MessagesApi) -> None:
    sent = wire.send("no key later", user="bob")
    assert wire.closing(sent)["status"] == "error"
    assert ends(wire, "bob", sent)["event"] == "error"
    told = history(api, wire, "bob")
    assert [message["role"] for message in told] == ["user", "assistant", "user", "assistant", "user"]
    assert "does not take the key" in words(told[3]["content"])


def test_what_the_provider_did_not_take_is_not_sent_again_as_it_was(wire: Wire, api: MessagesApi) -> None:
    sent = wire.send(f"refused later {'long ' * 1000}", user="cat")
    assert wire.closing(sent)["status"] == "error"
    told = history(api, wire, "cat")
    assert [message["role"] for message in told] == ["user", "assistant", "user"]
    assert "refused later" in words(told[0]["content"]) and len(words(told[0]["content"])) < 2500
    assert "check_agent_status" in words(told[1]["content"]), "what ran is named"


def test_a_refusal_sends_one_event(wire: Wire) -> None:
    sent = wire.send("decline", user="dan")
    wire.closing(sent)
    assert ends(wire, "dan", sent)["event"] == "error"
    assert joined(wire, "dan") == "The model declined to answer this."


@pytest.mark.parametrize("text", ["decline this", "choose", "silent", "cut once", "hello"])
def test_the_chunks_joined_are_the_answer_once(text: str, wire: Wire) -> None:
    user = text.split()[0]
    sent = wire.send(text, user=user)
    said = wire.closing(sent)
    ends(wire, user, sent)
    assert joined(wire, user) == said["content"]


def test_who_takes_a_turn_over_says_from_where_on_it_begins_anew(wire: Wire, place: Site) -> None:
    place.workers[-1].drain()
    (mortal,) = place.up("chatter", PROMPTDOCK_FAULT="result stored")
    sent = wire.send("it dies", user="eve")
    mortal.ended()
    place.up("chatter")
    assert wire.closing(sent)["content"] == "Then that."
    end = ends(wire, "eve", sent)
    assert (end["event"], end["content"], end["status"]) == ("done", "Then that.", "complete")
    starts = [event for event in events(wire, "eve") if event["event"] == "start"]
    assert [(event.get("again"), event.get("from")) for event in starts] == [(None, None), (True, 2)]
    assert joined(wire, "eve") == "First this. Then that."


def test_what_has_no_turn_of_the_model_ends_with_an_event_too(wire: Wire) -> None:
    sent = wire.send(user="fay", type="stop")
    wire.closing(sent)
    assert ends(wire, "fay", sent)["event"] == "error"
