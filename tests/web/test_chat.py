"""A message over HTTP and its answer: whole, and as a stream that ends in every case."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import words
from tests.support.processes import Site, Worker
from tests.web.support import Following, asks, joined

LOOK = {"name": "check_agent_status", "input": {"agent": "planner"}}
ASK = {
    "name": "escalate_to_human",
    "input": {"question": "Which database?", "options": ["SQLite", "Postgres"], "context": "Both would do."},
}
LONG = "One two three four five six seven eight nine ten. " * 6
RULES: list[dict[str, Any]] = [
    {
        "user": "look first",
        "steps": [{"text": "Let me look.", "tools": [LOOK]}, {"text": "Nobody is there."}],
    },
    {"user": "think", "steps": [{"thinking": "Six times seven.", "text": "42"}]},
    {"user": "choose", "steps": [{"text": "I need to know.", "tools": [ASK]}, {"text": "unreachable"}]},
    {"user": "forever", "steps": [{"text": "At last", "delay": 25.0}]},
    {"user": "slowly", "steps": [{"text": LONG, "pace": 0.2}]},
    {"user": "refused", "steps": [{"status": 401}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]

pytestmark = pytest.mark.usefixtures("chatter")


def test_a_message_is_answered_with_all_that_the_contract_names(web: httpx.Client) -> None:
    said = web.post("/api/agent/chat", json={"message": "Hello"}).json()
    assert said["answer"].endswith("Hello") and said["answer"].startswith("You said")
    assert (said["thinking"], said["has_thinking"]) == ("", False)
    assert said["session_id"] and said["task_id"] and said["model"]
    assert said["usage"]["output"] > 0 and said["total_time_ms"] >= 0


def test_the_returned_session_goes_on(web: httpx.Client, api: MessagesApi) -> None:
    first = web.post("/api/agent/chat", json={"message": "My name is Ada"}).json()
    again = {"message": "What am I called?", "session_id": first["session_id"]}
    assert web.post("/api/agent/chat", json=again).json()["session_id"] == first["session_id"]
    told = [words(one["content"]) for one in api.requests[-1]["messages"]]
    assert any("My name is Ada" in one for one in told)


def test_what_the_model_thinks_stands_apart_from_the_answer(web: httpx.Client) -> None:
    said = web.post("/api/agent/chat", json={"message": "think"}).json()
    assert (said["answer"], said["thinking"], said["has_thinking"]) == ("42", "Six times seven.", True)


def test_a_question_back_says_so_with_its_options(web: httpx.Client) -> None:
    said = web.post("/api/agent/chat", json={"message": "choose"}).json()
    assert (said["status"], said["question"]) == ("awaiting_input", "Which database?")
    assert said["options"] == ["SQLite", "Postgres"]


def test_a_stream_tells_the_tools_and_its_chunks_are_the_answer(web: httpx.Client) -> None:
    told = asks(web, "look first")
    kinds = [event.kind for event in told]
    assert kinds[0] == "accepted" and kinds[-1] == "done" and kinds.count("done") == 1
    assert kinds.index("start") < kinds.index("tool_call") < kinds.index("tool_result")
    assert joined(told) == "Let me look.\n\nNobody is there."
    done = told[-1].data
    assert {"task_id", "thinking", "has_thinking", "total_time_ms", "session_id"} <= set(done)
    call = next(event for event in told if event.kind == "tool_call")
    assert (call.data["tool"], call.data["arguments"]) == ("check_agent_status", {"agent": "planner"})


def test_a_stopped_turn_ends_its_stream(web: httpx.Client) -> None:
    session = "stopped-here"
    following = Following(web, "forever", session_id=session)
    following.until("start")
    assert web.post(f"/api/sessions/{session}/stop").status_code == 202
    assert following.ended()[-1].kind in ("done", "error")


def test_a_refusal_of_the_model_ends_its_stream_with_an_error(web: httpx.Client) -> None:
    told = asks(web, "refused")
    assert told[-1].kind == "error" and told[-1].data["error"]
    assert [event.kind for event in told].count("error") == 1


def test_a_failed_turn_is_an_error_of_http_too(web: httpx.Client) -> None:
    response = web.post("/api/agent/chat", json={"message": "refused"})
    assert response.status_code >= 500 and response.json()["error"]


def test_another_worker_goes_on_and_the_answer_comes_once(
    web: httpx.Client, place: Site, chatter: Worker
) -> None:
    following = Following(web, "slowly")
    following.until("chunk")
    chatter.kill()
    place.up("chatter")
    assert following.ended()[-1].kind == "done"
    assert joined(following.told).strip() == LONG.strip()


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "message"),
        ({"message": ""}, "message"),
        ({"message": "x", "temperature": -9}, "temperature"),
        ({"message": "x", "unknown": 1}, "unknown"),
        ({"message": "x", "session_id": "a b"}, "session_id"),
        ({"message": ["x"]}, "message"),
    ],
)
def test_what_cannot_be_taken_is_said_in_words(web: httpx.Client, body: dict[str, Any], word: str) -> None:
    response = web.post("/api/agent/chat", json=body)
    assert response.status_code == 422
    assert word in response.json()["why"]
