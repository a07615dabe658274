"""What a person may do while a turn runs: add to it, end it, answer its question, or talk elsewhere."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import words
from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire, listener

LONG, MANY = 25.0, 200
LOOK = {"name": "check_agent_status", "input": {"agent": "planner"}}
ASK = {
    "name": "escalate_to_human",
    "input": {"question": "Which database?", "options": ["SQLite", "Postgres"], "context": "Both would do."},
}
RULES: list[dict[str, Any]] = [
    {"user": "two rounds", "steps": [{"tools": [LOOK], "delay": 1.0}, {"text": "Both rounds are done"}]},
    {"user": "forever", "steps": [{"text": "At last", "delay": LONG}]},
    {"user": "hold on", "steps": [{"text": "Held on", "hold": "second"}]},
    {"user": "stay put", "steps": [{"text": "Stayed", "hold": "third"}]},
    {"user": "overloaded", "steps": [{"status": 529, "retry_after": 1}]},
    {"user": "at once with many", "steps": [{"text": "One of many", "hold": "many"}]},
    {
        "user": "ask mute",
        "steps": [
            {"tools": [{"name": "consult_agent", "input": {"agent": "mute", "question": "Hello?"}}]},
            {"text": "Without mute: {{result.error}}"},
        ],
    },
    {"user": "choose", "steps": [{"text": "I need to know.", "tools": [ASK]}, {"text": "unreachable"}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]


@pytest.fixture(scope="module", autouse=True)
def chatter(place: Site) -> Worker:
    """Chatter alone."""
    return place.up("chatter")[0]


def asked(api: MessagesApi, text: str) -> list[list[Message]]:
    """The conversations that the model was sent and that hold these words."""
    found = [body["messages"] for body in api.requests]
    return [messages for messages in found if any(text in words(m["content"]) for m in messages)]


def thinking(api: MessagesApi, text: str) -> None:
    """Wait until the model is asked about these words."""
    until(lambda: asked(api, text), what=f"a call of the model about {text!r}")


def test_an_amendment_joins_the_turn_that_runs(wire: Wire, api: MessagesApi) -> None:
    first = wire.send("two rounds, amended", user="amender")
    thinking(api, "two rounds, amended")
    second = wire.send("make it blue", user="amender", type="amend")
    said = wire.closing(second)
    assert (said["answers"], said["content"]) == ([first, second], "Both rounds are done")
    last = asked(api, "two rounds, amended")[-1]
    assert words(last[-1]["content"]) == "[from amender]: make it blue"
    assert len(wire.closings("amender")) == 1


def test_a_reply_to_a_message_that_is_being_answered_joins_its_turn(wire: Wire, api: MessagesApi) -> None:
    first = wire.send("two rounds, replied to", user="replier")
    thinking(api, "two rounds, replied to")
    second = wire.send("and green", user="replier", in_reply_to=first)
    assert wire.closing(second)["answers"] == [first, second]


def test_a_plain_message_waits_and_is_answered_by_itself(wire: Wire, api: MessagesApi) -> None:
    first = wire.send("two rounds, then more", user="talker")
    thinking(api, "two rounds, then more")
    second = wire.send("something else", user="talker")
    assert wire.closing(second)["answers"] == [second]
    assert [said["answers"] for said in wire.closings("talker")] == [[first], [second]]


@pytest.mark.parametrize("kind", ["amend", "stop", "approval"])
def test_what_concerns_no_running_turn_is_answered_with_an_error(kind: str, wire: Wire) -> None:
    more: dict[str, Any] = {"approval_id": "a1", "decision": "allow_once"} if kind == "approval" else {}
    said = wire.ask("too late", user=f"late-{kind}", type=kind, **more)
    assert (said["status"], said["user_id"]) == ("error", f"late-{kind}")


def test_stop_ends_a_turn_at_once(wire: Wire, api: MessagesApi) -> None:
    first = wire.send("think forever", user="stopper")
    thinking(api, "think forever")
    began = time.monotonic()
    second = wire.send(user="stopper", type="stop")
    said = wire.closing(second)
    assert time.monotonic() - began < 15  # the call would go on for ever
    assert (said["status"], set(said["answers"])) == ("complete", {first, second})
    assert "Stopped" in said["content"]
    until(lambda: any(exchange.left for exchange in api.exchanges), what="the end of the model call")
    assert wire.ask("Are you there?", user="stopper")["status"] == "complete"


def test_a_stop_for_a_turn_that_ended_stops_nothing_else_and_says_so(wire: Wire, api: MessagesApi) -> None:
    ended = wire.send("quick one", user="second")
    wire.closing(ended)
    runs = wire.send("hold on", user="second")
    thinking(api, "hold on")
    said = wire.closing(wire.send(user="second", type="stop", turn_id=ended))
    assert (said["status"], said["content"]) == ("error", "That has ended already. Nothing was stopped.")
    assert (said["session_id"], len(said["answers"])) == ("user:second", 1)
    late = wire.closing(wire.send("and more", user="second", type="amend", turn_id=ended))
    assert (late["status"], "has ended already" in late["content"]) == ("error", True)
    named = wire.closing(wire.send(user="second", type="stop", turn_id="never-sent"))
    assert (named["status"], "is known here" in named["content"]) == ("error", True)
    consult = wire.closing(wire.send(user="second", type="stop", request_id=f"{ended}.1.1"))
    assert consult["status"] == "error"
    api.released.add("second")
    assert wire.closing(runs)["content"] == "Held on"
    assert wire.closing(runs)["answers"] == [runs]


def test_a_stop_for_a_message_that_waits_takes_it_back_and_what_runs_goes_on(
    wire: Wire, api: MessagesApi
) -> None:
    runs = wire.send("stay put", user="third")
    thinking(api, "stay put")
    waits = wire.send("never begun", user="third")
    said = wire.closing(wire.send(user="third", type="stop", turn_id=waits))
    assert (said["status"], said["content"], waits in said["answers"]) == (
        *("complete", "Stopped before it was begun."),
        True,
    )
    api.released.add("third")
    assert wire.closing(runs)["answers"] == [runs]
    assert wire.ask("and now?", user="third")["status"] == "complete"
    assert not asked(api, "never begun")


def test_a_stop_and_an_amendment_that_name_the_turn_that_runs_reach_it(wire: Wire, api: MessagesApi) -> None:
    first = wire.send("two rounds, by name", user="namer")
    thinking(api, "two rounds, by name")
    second = wire.send("make it red", user="namer", type="amend", turn_id=first)
    assert wire.closing(second)["answers"] == [first, second]
    third = wire.send("forever, by name", user="namer")
    thinking(api, "forever, by name")
    stop = wire.send(user="namer", type="stop", turn_id=third)
    assert set(wire.closing(stop)["answers"]) == {third, stop}


def test_a_deadline_ends_a_turn_that_runs(wire: Wire, api: MessagesApi) -> None:
    ends = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    first = wire.send("forever, but not so long", user="hasty", deadline=ends)
    thinking(api, "forever, but not so long")
    said = wire.closing(first, LONG - 5)
    assert (said["status"], "ended at its deadline" in said["content"]) == ("error", True)
    assert wire.ask("And now?", user="hasty")["status"] == "complete"


def test_an_overloaded_provider_is_waited_for_the_person_is_told_and_may_stop(
    wire: Wire, api: MessagesApi
) -> None:
    first = wire.send("overloaded for long", user="patient")
    until(lambda: len(asked(api, "overloaded for long")) > 1, what="another try")
    until(lambda: wire.outputs("patient"), what="word of the wait")
    (told,) = [said for said in wire.outputs("patient") if said["status"] == "progress"]
    assert told["content"].startswith(
        "The model provider makes us wait: Anthropic is overloaded; trying again in"
    )
    assert told["content"].endswith("/stop ends it")
    said = wire.closing(wire.send(user="patient", type="stop"))
    assert (said["status"], first in said["answers"]) == ("complete", True)


def test_stop_ends_one_consult_and_the_turn_goes_on(wire: Wire) -> None:
    with listener(wire.url, wire.names.agent("mute")) as heard:
        first = wire.send("ask mute", user="chooser")
        (question,) = until(heard, what="the question to mute")
        began = time.monotonic()
        wire.send(user="chooser", type="stop", request_id=question["id"], reason="go on")
        said = wire.closing(first)
    assert time.monotonic() - began < 15
    assert (said["status"], said["content"]) == ("complete", "Without mute: stopped by the person: go on")


def test_a_question_to_the_person_waits_for_the_next_message(wire: Wire, api: MessagesApi) -> None:
    said = wire.ask("choose for me", user="decider")
    assert (said["status"], said["question"]) == ("awaiting_input", "Which database?")
    assert said["options"] == ["SQLite", "Postgres"]
    assert "Both would do." in said["content"]
    assert wire.ask("Postgres", user="decider")["content"] == "You said: [from decider]: Postgres"
    told = asked(api, "Postgres")[-1]
    assert [message["role"] for message in told] == ["user", "assistant", "user"]
    assert [block["type"] for block in told[-1]["content"]] == ["tool_result", "text", "text"]


def test_one_slow_conversation_holds_up_no_other(wire: Wire, api: MessagesApi) -> None:
    slow = wire.send("this takes forever", user="slow")
    thinking(api, "this takes forever")
    began = time.monotonic()
    sent = [wire.send(f"quick {n}", user=f"quick{n}") for n in range(10)]
    sent.append(wire.send("quick too", user="slow", session_id="another"))
    for message in sent:
        wire.closing(message)
    assert time.monotonic() - began < 20  # the slow one never ends by itself
    wire.closing(wire.send(user="slow", type="stop"))
    assert [said["answers"][0] for said in wire.closings("slow")][-1] == slow


def test_one_process_has_two_hundred_turns_in_flight(wire: Wire, api: MessagesApi, chatter: Worker) -> None:
    sent = [wire.send("at once with many", user=f"many{n}") for n in range(MANY)]
    until(lambda: len(asked(api, "at once with many")) == MANY, what="all calls of the model")
    assert not any(said["content"] == "One of many" for said in wire.outputs())
    api.released.add("many")
    for message in sent:
        wire.closing(message)
    ended = [said["answers"] for said in wire.closings() if said["content"] == "One of many"]
    assert sorted(ended) == sorted([message] for message in sent)
    assert chatter.process.poll() is None


def test_a_person_may_call_one_tool(wire: Wire) -> None:
    said = wire.command("list_repos", user="caller")
    assert (said["status"], said["result"]) == ("complete", {"repos": []})


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("fly_to_the_moon", {}, "there is no tool called 'fly_to_the_moon'"),
        ("get_task", {"task_id": "nothing-here"}, "there is no task called 'nothing-here'"),
        ("get_task", {"task": "nothing-here"}, "cannot take these arguments"),
    ],
)
def test_a_tool_that_fails_is_told_as_an_error(tool: str, arguments: Message, told: str, wire: Wire) -> None:
    said = wire.command(tool, user="caller", **arguments)
    assert (said["status"], told in said["result"]["error"], told in said["content"]) == ("error", True, True)
