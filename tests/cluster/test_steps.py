"""The testing steps of Chatter, one after the other, as somebody with a terminal would take them."""

from __future__ import annotations

import json
import time
from typing import Any

import psutil
import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import words
from tests.support.processes import Site, Worker, until
from tests.support.wire import Wire, listener

PLAN = {
    "summary": "Tokens first, then the login page",
    "write": True,
    "tasks": [
        {
            "title": "Issue tokens",
            "description": "Issue and check them.",
            "agent": "backend",
            "acceptance": ["works"],
        }
    ],
}
RULES: list[dict[str, Any]] = [
    {
        "system": "You are Planner",
        "steps": [{"tools": [{"name": "submit_plan", "input": PLAN}]}, {"text": "Two steps will do."}],
    },
    {
        "user": "plan a user",
        "steps": [
            {"tools": [{"name": "consult_planner", "input": {"question": "{{user}}"}}]},
            {"text": "The plan: {{result.plan.summary}}"},
        ],
    },
    {
        "user": "check with backend",
        "steps": [
            {
                "tools": [
                    {"name": "consult_agent", "input": {"agent": "backend", "question": "Are you well?"}}
                ]
            },
            {"text": "{{result.error}}; {{result.fix}}"},
        ],
    },
    {"user": "late answer from agent mute", "steps": [{"text": "Mute said after all: {{user}}"}]},
    {
        "user": "ask mute",
        "steps": [
            {"tools": [{"name": "consult_agent", "input": {"agent": "mute", "question": "Hello?"}}]},
            {"text": "{{result.error}}. {{result.suggestion}}"},
        ],
    },
    {"steps": [{"text": "You said: {{user}}"}]},
]
SETTINGS = {"TOOL_CALL_TIMEOUT": "1500"}


@pytest.fixture(scope="module")
def chatter(place: Site, wire: Wire) -> Worker:
    """Chatter, with a Planner beside it, who has answered before, and no other agent."""
    running = place.up("chatter", "planner")[0]
    question = {"id": "first", "from": "x", "to": "planner", "type": "question", "payload": {"question": "?"}}
    wire.publish("agent:planner", question)  # the first call of a model loads its library: that may take long
    wire.wait("agent:x", lambda message: message["type"] == "response")
    return running


def _in_order(said: list[str], *lines: str) -> None:
    """Each of the lines stands in the log, behind the one before it."""
    at = 0
    for line in lines:
        places = [n for n, words in enumerate(said[at:], at) if line in words]
        assert places, f"{line!r} is not behind place {at} of {said}"
        at = places[0] + 1


def test_starting_says_what_it_does_in_order(chatter: Worker, place: Site) -> None:
    names = place.names
    assert chatter.said()[:4] == [
        "Chatter agent starting...",
        "Connected to Redis",
        f"Subscribed to: {names.channel('human-input')}, {names.agent('chatter')}",
        "Chatter ready",
    ]


def test_what_the_first_answer_needs_is_loaded_before_anybody_asks(chatter: Worker) -> None:
    """The provider's library is known by a compiled one that only it brings into a process."""
    seen = psutil.Process(chatter.pid)
    until(lambda: any("jiter" in part.path for part in seen.memory_maps()), what="the library in memory")


def test_a_simple_message_is_answered(chatter: Worker, wire: Wire) -> None:
    start = len(chatter.said())
    wire.publish("human-input", '{"user_id":"test","content":"Hello"}')
    said = wire.wait("chatter-output", lambda output: output["status"] == "complete")
    assert said["user_id"] == "test"
    assert said["content"] == "You said: [from test]: Hello"
    assert said["answers"] == [said["in_reply_to"]]
    assert not said.get("demo")
    _in_order(
        chatter.said(start),
        "Received message from user: test",
        "Calling Claude API...",
        "Publishing response...",
    )


def test_a_message_that_needs_planning_is_answered_with_the_planners_plan(
    chatter: Worker, wire: Wire, place: Site
) -> None:
    start = len(chatter.said())
    said = wire.ask("Plan a user authentication system")
    assert said["content"] == "The plan: Tokens first, then the login page"
    assert [o["content"] for o in wire.outputs() if o["status"] == "progress"] == [
        "Consulting with Planner..."
    ]
    question = wire.wait("agent:planner", lambda message: message["from"] == "chatter")
    answer = wire.wait("agent:chatter", lambda message: message["type"] == "response")
    assert (question["from"], answer["from"], answer["to"]) == ("chatter", "planner", "chatter")
    assert answer["payload"]["request_id"] == question["id"]
    _in_order(
        chatter.said(start),
        "Claude requested tool: consult_planner",
        f"Publishing to {wire.names.agent('planner')} channel",
        "Waiting for planner response...",
        "Received response from planner",
        "Continuing conversation with tool result",
        "Publishing final response",
    )
    (task,) = place.query("select * from tasks order by created_at desc limit 1")
    person, conversation = said["user_id"], said["session_id"]
    assert (task["user_id"], task["session_id"]) == (person, conversation), "written for whoever asked"


def test_an_offline_agent_is_reported_within_five_seconds_with_what_to_do(
    chatter: Worker, wire: Wire
) -> None:
    start = len(chatter.said())
    said = wire.ask("Check with backend worker")
    assert "backend is offline" in said["content"]
    assert "promptdock up -d --with backend" in said["content"]
    _in_order(chatter.said(start), "backend is offline", "Informing user of offline agent")
    assert not wire.on("agent:backend")


def test_the_answer_of_a_silent_agent_that_comes_too_late_is_told_in_a_turn_of_its_own(
    chatter: Worker, wire: Wire
) -> None:
    start = len(chatter.said())
    with listener(wire.url, wire.names.agent("mute")) as heard:
        began = time.monotonic()
        said = wire.ask("Ask mute", user="patient")
        assert "mute did not respond within timeout" in said["content"]
        assert "check agent status" in said["content"]
        assert 1.5 <= time.monotonic() - began < 20  # not the five minutes that are the default
        _in_order(chatter.said(start), "No response from mute within timeout", "Informing user of timeout")
        (question,) = heard()
    answer = {"request_id": question["id"], "answer": "I was asleep"}
    envelope = {"id": "late-1", "from": "mute", "to": "chatter", "type": "response", "payload": answer}
    for _ in range(2):  # the second one is known already
        wire.publish("agent:chatter", envelope)
    late = wire.wait("chatter-output", lambda output: "Mute said after all" in output["content"])
    assert (late["user_id"], late["session_id"]) == ("patient", said["session_id"])
    assert (late["status"], "I was asleep" in late["content"]) == ("complete", True)
    consults = [event for event in wire.on("events:user:patient") if event["event"] == "consult"]
    assert [event["state"] for event in consults] == ["sent", "timeout", "late"]
    assert {event["request_id"] for event in consults} == {question["id"]}
    wire.ask("And now?", user="patient")
    closed = [output["content"] for output in wire.outputs("patient") if output["status"] == "complete"]
    assert sum("Mute said after all" in content for content in closed) == 1


def test_several_messages_of_one_person_are_one_conversation(wire: Wire, api: MessagesApi) -> None:
    for text in ("Build auth", "Use JWT tokens"):
        wire.ask(text, user="builder", user_name="Ada")
    said = [words(message["content"]) for message in api.requests[-1]["messages"]]
    assert said == [
        "[from Ada]: Build auth",
        "You said: [from Ada]: Build auth",
        "[from Ada]: Use JWT tokens",
    ]
    wire.ask("Who am I?", user="stranger")
    assert "JWT" not in json.dumps(api.requests[-1]["messages"])


MALFORMED: dict[str, bytes] = {
    "no JSON": b"invalid json",
    "no UTF-8": b'{"user_id":"test","content":"\xff\xfe"}',
    "no object": b'["user_id", "test"]',
    "empty": b"",
    "null": b"null",
    "no user": b'{"content":"Hello"}',
    "an empty user": b'{"user_id":"","content":"Hello"}',
    "half a character": b'{"user_id":"broken","content":"\\ud800"}',
    "no content": b'{"user_id":"broken"}',
    "content of a wrong type": b'{"user_id":"broken","content":{"text":"Hello"}}',
    "a user of a wrong type": b'{"user_id":7,"content":"Hello"}',
    "an unknown type": b'{"user_id":"broken","type":"explode","content":"Hello"}',
    "a key twice": b'{"user_id":"broken","content":"a","content":"b"}',
    "a reserved key": b'{"user_id":"broken","content":"a","__proto__":{}}',
    "no number": b'{"user_id":"broken","content":"a","temperature":NaN}',
    "a huge number": b'{"user_id":"broken","content":"a","x":1e999}',
    "a time that is none": b'{"user_id":"broken","content":"a","deadline":"tomorrow"}',
    "a session that is none": b'{"user_id":"broken","content":"a","session_id":"@tasks"}',
    "too deep": b'{"user_id":"broken","content":"a","x":' + b"[" * 200 + b"]" * 200 + b"}",
    "far too deep": b"[" * 100_000,
    "too large": b'{"user_id":"broken","content":"' + b"a" * 300_000 + b'"}',
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_message_is_kept_and_answered_and_the_next_one_is_not_held_up(
    kind: str, chatter: Worker, wire: Wire
) -> None:
    data, start = MALFORMED[kind], len(wire.heard)
    kept = len(wire.dead())
    wire.publish("human-input", data)
    after = wire.ask("Still there?", user="patient")
    assert after["content"] == "You said: [from patient]: Still there?"
    (letter,) = wire.dead()[kept:]
    assert letter["reason"].startswith("malformed: the ")
    if b'"user_id":"broken"' in data:
        told = wire.wait("chatter-output", lambda output: output["user_id"] == "broken", 5, start)
        assert (told["status"], bool(told["content"])) == ("error", True)
    chatter.says("Failed to parse message")
    assert chatter.process.poll() is None


@pytest.mark.parametrize(
    "message",
    [
        {"id": "q1", "from": "x", "to": "planner", "type": "task", "payload": {}},
        {"id": "q2", "from": "system", "to": "chatter", "type": "task", "payload": {}},
        {"id": "q3", "from": "x", "to": "chatter", "type": "response", "payload": {"answer": "to nothing"}},
        {"id": "q4", "from": "x", "to": "chatter", "type": "response", "payload": {"request_id": "nobody"}},
        {"id": "q5", "from": "x", "to": "chatter", "type": "task", "payload": {}, "v": 99},
    ],
    ids=["for another", "from a reserved name", "to no request", "to an unknown request", "too new"],
)
def test_a_message_between_agents_that_cannot_be_used_is_kept_with_its_reason(
    message: dict[str, Any], wire: Wire, chatter: Worker
) -> None:
    kept = len(wire.dead())
    wire.publish("agent:chatter", message)
    (letter,) = until(lambda: wire.dead()[kept:], what="a dead letter")
    assert letter["reason"] == "unknown_request" or letter["reason"].startswith("malformed: ")
    assert wire.ask("Still there?", user="patient")["status"] == "complete"


def test_well_formed_messages_between_malformed_ones_are_answered_within_a_second(wire: Wire) -> None:
    took = []
    for data in list(MALFORMED.values())[:8]:
        wire.publish("human-input", data)
        began = time.monotonic()
        wire.ask("Quick", user="quick")
        took.append(time.monotonic() - began)
    assert sorted(took)[len(took) // 2] < 1  # a machine that others use may be slow at one of them


def test_a_conversation_that_redis_has_forgotten_goes_on_whole_from_the_store(
    place: Site, wire: Wire, api: MessagesApi
) -> None:
    wire.ask("My cat is called Muon", user="owner")
    kept = "select 1 from conversation_messages where session_id = 'user:owner' and role = 'assistant'"
    until(lambda: place.query(kept), what="the conversation in the Store")
    assert wire.redis.delete(f"{wire.names.queue('chatter')}window:user:owner") == 1
    for _ in range(2):  # the second time from what Redis was given back
        wire.ask("What is my cat called?", user="owner")
        assert "My cat is called Muon" in words(api.requests[-1]["messages"][0]["content"])


def test_a_hundred_messages_are_answered_and_the_worker_does_not_grow(chatter: Worker, wire: Wire) -> None:
    def burst() -> None:
        for message in [wire.send(f"Message {n}", user=f"many{n % 10}") for n in range(100)]:
            wire.closing(message)

    burst()
    before = chatter.rss()
    burst()
    assert chatter.rss() - before < 8 * 1024 * 1024
