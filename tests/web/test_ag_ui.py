"""AG-UI's own types read the door /ag-ui: runs, text, calls of tools, interrupts and what goes on after them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

LOOK = {"name": "check_agent_status", "input": {"agent": "planner"}}
BUDGET = {"name": "set_day_budget", "input": {"dollars": 5}}
RULES: list[dict[str, Any]] = [
    {
        "user": "look first",
        "steps": [{"text": "Let me look.", "tools": [LOOK]}, {"text": "Nobody is there."}],
    },
    {
        "user": "ask leave",
        "steps": [{"text": "May I?", "tools": [BUDGET]}, {"text": "It came to: {{result}}"}],
    },
    {"user": "think", "steps": [{"thinking": "Six times seven.", "text": "42"}]},
    {"user": "refused", "steps": [{"status": 401}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]
_EVENT: TypeAdapter[Any] = TypeAdapter(Event)

pytestmark = pytest.mark.usefixtures("chatter")


def run(web: httpx.Client, text: str, thread: str = "t", **more: Any) -> list[Any]:
    """The events of a run, each as AG-UI's own package reads it."""
    said = [{"id": "m", "role": "user", "content": text}]
    body = {"threadId": thread, "runId": "r", "state": {}, "messages": said, "tools": [], "context": []}
    response = web.post("/ag-ui", json={**body, "forwardedProps": {}, **more})
    assert response.status_code == 200, response.text
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [_EVENT.validate_json(line) for line in lines]


def kinds(told: list[Any]) -> list[str]:
    """Their types in order."""
    return [str(event.type.value) for event in told]


def text(told: list[Any]) -> str:
    """The words of the messages."""
    return "".join(event.delta for event in told if event.type.value == "TEXT_MESSAGE_CONTENT")


def test_a_run_is_text_between_its_start_and_its_end(web: httpx.Client) -> None:
    told = run(web, "Hello", "plain")
    assert kinds(told)[0] == "RUN_STARTED" and kinds(told)[-1] == "RUN_FINISHED"
    assert kinds(told).count("TEXT_MESSAGE_START") == kinds(told).count("TEXT_MESSAGE_END") == 1
    assert text(told).endswith("Hello") and told[-1].outcome.type == "success"


def test_calls_of_tools_stand_between_messages_that_are_closed(web: httpx.Client) -> None:
    told = run(web, "look first", "tools")
    order = [kind for kind in kinds(told) if kind not in ("TEXT_MESSAGE_CONTENT", "CUSTOM")]
    assert order == [
        "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END",
        "TOOL_CALL_RESULT", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_FINISHED",
    ]  # fmt: skip


def test_what_the_model_thinks_is_reasoning(web: httpx.Client) -> None:
    told = run(web, "think", "thinking")
    thought = [event.delta for event in told if event.type.value == "REASONING_MESSAGE_CHUNK"]
    assert "".join(thought) == "Six times seven." and text(told) == "42"


@pytest.mark.parametrize(("status", "allowed"), [("resolved", True), ("cancelled", False)])
def test_a_request_for_permission_interrupts_the_run_and_the_next_one_answers_it(
    web: httpx.Client, status: str, allowed: bool
) -> None:
    told = run(web, "ask leave", f"leave-{status}")
    assert kinds(told)[-1] == "RUN_FINISHED", told[-1]
    assert told[-1].outcome.type == "interrupt"
    interrupt = told[-1].outcome.interrupts[0]
    resume = [{"interruptId": interrupt.id, "status": status}]
    more = run(web, "ignored", f"leave-{status}", messages=[], resume=resume)
    assert kinds(more)[-1] == "RUN_FINISHED" and more[-1].outcome.type == "success"
    assert ("not allowed" not in text(more)) == allowed, text(more)


def test_a_failed_turn_is_a_run_error(web: httpx.Client) -> None:
    told = run(web, "refused", "failed")
    assert kinds(told)[-1] == "RUN_ERROR" and told[-1].message


def test_tools_of_the_client_are_ignored_in_words(web: httpx.Client) -> None:
    tool = {"name": "f", "description": "", "parameters": {}}
    told = run(web, "Hello", "warned", tools=[tool])
    assert any(event.type.value == "CUSTOM" and event.name == "warnings" for event in told)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"threadId": "a b", "runId": "r", "messages": []},
        {"threadId": "t", "runId": "r", "messages": []},
        {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": " "}]},
        {
            "threadId": "t",
            "runId": "r",
            "messages": [],
            "resume": [{"interruptId": "nope", "status": "resolved"}],
        },
    ],
)
def test_what_is_no_run_is_refused_in_words(web: httpx.Client, body: dict[str, Any]) -> None:
    response = web.post("/ag-ui", json=body)
    assert response.status_code in (404, 422) and response.json()["error"]
