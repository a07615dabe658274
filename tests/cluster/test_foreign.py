"""Any program can be an agent: plain redis-py, a few lines, no library of ours."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire, listener

PLANNER = """
import json, redis, sys
url, hear, say = sys.argv[1:]
r = redis.Redis.from_url(url)
with r.pubsub() as p:
    p.subscribe(hear)
    for event in p.listen():
        if event["type"] == "message":
            q = json.loads(event["data"])
            answer = {"request_id": q["id"], "summary": "foreign plan for " + q["payload"]["question"]}
            r.publish(say, json.dumps({"id": "f-" + q["id"], "from": "planner", "to": "chatter",
                                       "type": "response", "payload": answer}))
"""
# It says how far it is, and more than anybody can read.
SLOW = PLANNER.replace(
    "            answer =",
    """            for text in ["reading \\x1b[31mthe shed", *(f"nail {n}" for n in range(100))]:
                said = {"request_id": q["id"], "message": text}
                r.publish(say, json.dumps({"id": q["id"] + str(len(text)), "from": "planner", "to": "chatter",
                                           "type": "progress", "payload": said}))
            answer =""",
)
# It turns around what it got, `via` and all: what a program does that knows nothing of the envelope.
ECHO = """
import json, redis, sys
url, hear, say = sys.argv[1:]
r = redis.Redis.from_url(url)
with r.pubsub() as p:
    p.subscribe(hear)
    for event in p.listen():
        if event["type"] == "message":
            m = json.loads(event["data"])
            m["payload"] = {"request_id": m["id"], "echo": m["payload"]}
            m.update({"from": m["to"], "to": m["from"], "type": "response", "id": "e-" + m["id"]})
            r.publish(say, json.dumps(m))
"""
RULES: list[dict[str, Any]] = [
    {"system": "You are Planner", "steps": [{"delay": 1.5, "text": "Our own plan"}]},
    {"system": "You are Researcher", "steps": [{"text": "Nothing is there yet."}]},
    {
        "user": "plan",
        "steps": [
            {"tools": [{"name": "consult_planner", "input": {"question": "a shed"}}]},
            {"text": "{{result.summary}}{{result.answer}}"},
        ],
    },
    {
        "user": "echo",
        "steps": [
            {"tools": [{"name": "consult_agent", "input": {"agent": "echo", "question": "Who is there?"}}]},
            {"text": "{{result.echo.question}}"},
        ],
    },
    {"user": "question from agent", "steps": [{"text": "Chatter answers {{user}}"}]},
]
SETTINGS = {"TOOL_CALL_TIMEOUT": "90000"}  # longer than a test waits: no consult here is to time out


@pytest.fixture(scope="module", autouse=True)
def chatter(place: Site) -> Worker:
    """Chatter and Researcher; there is no Planner of ours at first."""
    return place.up("chatter", "researcher")[0]


@contextlib.contextmanager
def program(source: str, folder: Path, wire: Wire, hear: str, say: str) -> Iterator[None]:
    """A foreign program that listens on one channel and answers on another."""
    file = folder / "program.py"
    file.write_text(source)
    channel, names = wire.names.agent(hear), wire.names

    def listening() -> int:
        return int(dict(wire.redis.pubsub_numsub(channel))[channel.encode()])

    before = listening()
    running = subprocess.Popen([sys.executable, str(file), wire.url, channel, names.channel(say)])
    try:
        until(lambda: listening() > before, what="a subscription")
        yield
    finally:
        running.kill()
        running.wait(10)


def question(number: str, to: str, **more: Any) -> Message:
    """A question as a foreign program called x asks it."""
    payload = {"question": "Is there any authentication?", "repos": ["both"]}
    return {"id": number, "from": "x", "to": to, "type": "question", "payload": payload, **more}


def test_a_program_that_subscribes_to_the_planners_channel_is_the_planner(wire: Wire, tmp_path: Path) -> None:
    with program(PLANNER, tmp_path, wire, "planner", "agent:chatter"):
        assert wire.ask("Plan it")["content"] == "foreign plan for a shed"


def test_a_person_reads_how_far_the_agent_is_that_is_consulted_for_them(wire: Wire, tmp_path: Path) -> None:
    before = len(wire.outputs())
    with program(SLOW, tmp_path, wire, "planner", "agent:chatter"):
        said = wire.ask("Plan it slowly")
        assert said["content"] == "foreign plan for a shed"
    events = [e for e in wire.on(f"events:{said['session_id']}") if e["event"] == "consult"]
    request = events[-1]["request_id"]
    assert [e["state"] for e in events if e["request_id"] == request] == ["sent", "working", "answered"]
    told = [m["content"] for m in wire.outputs()[before:] if m["status"] == "progress"]
    assert told[0] == "Consulting with Planner..."
    assert told[1].startswith("Planner: reading ") and "\x1b" not in told[1]
    assert len(told) < 20


def test_of_a_foreign_planner_and_our_own_the_first_answer_wins_once(
    wire: Wire, place: Site, api: MessagesApi, tmp_path: Path
) -> None:
    (own,) = place.up("planner")
    try:
        with program(PLANNER, tmp_path, wire, "planner", "agent:chatter"):
            start = len(api.requests)
            said = wire.ask("Plan it again", user="racer")
        assert said["content"] == "foreign plan for a shed"
        queue = wire.names.queue("planner")
        until(lambda: not wire.redis.xlen(f"{queue}inbox"), what="the end of the request that lost")
        assert wire.ask("Plan it without the other", user="racer")["content"] == "Our own plan"
        asked = [body for body in api.requests[start:] if "You are Chatter" in str(body["system"])]
        assert len(asked) == 4  # two for each message: no answer opened a turn of its own
    finally:
        assert own.drain() == 0


def test_a_program_that_turns_a_message_around_with_all_its_fields_is_understood(
    wire: Wire, tmp_path: Path
) -> None:
    with program(ECHO, tmp_path, wire, "echo", "agent:chatter"):
        assert wire.ask("Echo, please", user="caller")["content"] == "Who is there?"


@pytest.mark.parametrize(
    ("to", "words"), [("researcher", "Nothing is there"), ("chatter", "Chatter answers")]
)
def test_a_question_of_a_foreign_program_is_answered_on_its_channel(to: str, words: str, wire: Wire) -> None:
    with listener(wire.url, wire.names.agent("x")) as heard:
        wire.publish(f"agent:{to}", question(f"x-{to}", to))
        answer = until(lambda: [m for m in heard() if m["type"] == "response"], what="an answer")[0]
        assert (answer["from"], answer["to"], answer["payload"]["request_id"]) == (to, "x", f"x-{to}")
        assert words in answer["payload"]["answer"]


def test_an_answer_goes_to_the_channel_that_the_question_names(wire: Wire) -> None:
    with listener(wire.url, "answers-for-x") as heard:
        wire.publish("agent:researcher", question("x-named", "researcher", reply_channel="answers-for-x"))
        (answer,) = until(heard, what="an answer")
    assert answer["payload"]["request_id"] == "x-named"
    assert not [m for m in wire.on("agent:x") if m["payload"].get("request_id") == "x-named"]


@pytest.mark.parametrize("channel", ["human-input", "chatter-output", "agent:planner", "broadcast"])
def test_an_answer_never_goes_to_a_channel_that_is_not_for_answers(channel: str, wire: Wire) -> None:
    number, named = f"x-to-{channel}", wire.names.channel(channel)
    wire.publish("agent:researcher", question(number, "researcher", reply_channel=named))
    answer = wire.wait("agent:x", lambda m: m["payload"].get("request_id") == number)
    assert answer["type"] == "response"
    assert not [m for m in wire.on(channel) if number in str(m)]


def test_a_question_that_is_asked_twice_is_answered_once(wire: Wire) -> None:
    for _ in range(3):
        wire.publish("agent:researcher", question("x-thrice", "researcher"))
    wire.publish("agent:researcher", question("x-after", "researcher"))
    for number in ("x-thrice", "x-after"):
        wire.wait("agent:x", lambda m, n=number: m["payload"].get("request_id") == n)  # type: ignore[misc]
    assert len([m for m in wire.on("agent:x") if m["payload"].get("request_id") == "x-thrice"]) == 1
