"""The real client of OpenAI on the door /v1: whole answers, streams, conversations, and what it may not expect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import words
from tests.support.processes import Site, until

ASK = {
    "name": "escalate_to_human",
    "input": {"question": "Which database?", "options": ["SQLite", "Postgres"], "context": "Both would do."},
}
RULES: list[dict[str, Any]] = [
    {"user": "choose", "steps": [{"text": "I need to know.", "tools": [ASK]}, {"text": "unreachable"}]},
    {"user": "forever", "steps": [{"text": "One word after the other. " * 30, "pace": 0.3}]},
    {"user": "refused", "steps": [{"status": 401}]},
    {"system": "planner", "user": "How", "steps": [{"text": "In two steps."}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]
MODEL = "promptdock/chatter"

pytestmark = pytest.mark.usefixtures("chatter")


@pytest.fixture(scope="module")
def sdk(url: str) -> Iterator[openai.OpenAI]:
    """As people make it."""
    with httpx2.Client(trust_env=False) as line:
        yield openai.OpenAI(
            base_url=f"{url}/v1", api_key="unused", max_retries=0, http_client=line, timeout=60
        )


def user(text: str) -> Any:
    """A message of a person."""
    return {"role": "user", "content": text}


def test_the_agents_that_are_here_are_models(sdk: openai.OpenAI) -> None:
    assert MODEL in [model.id for model in sdk.models.list()]
    assert sdk.models.retrieve(MODEL).id == MODEL


def test_an_answer_comes_with_its_usage(sdk: openai.OpenAI) -> None:
    done = sdk.chat.completions.create(model=MODEL, messages=[user("Hello")])
    assert (done.choices[0].message.content or "").endswith("Hello")
    assert done.choices[0].finish_reason == "stop"
    assert (
        done.usage and done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens > 0
    )


def test_a_stream_is_the_answer_in_pieces_with_its_usage_at_the_end(sdk: openai.OpenAI) -> None:
    stream = sdk.chat.completions.create(
        model=MODEL, messages=[user("Hello")], stream=True, stream_options={"include_usage": True}
    )
    pieces = list(stream)
    said = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    assert said.endswith("Hello")
    assert [piece.choices[0].finish_reason for piece in pieces if piece.choices][-1] == "stop"
    assert pieces[-1].usage and pieces[-1].usage.completion_tokens > 0


def test_what_the_client_sends_again_goes_on_in_one_conversation(
    sdk: openai.OpenAI, api: MessagesApi
) -> None:
    told = [user("My cat is called Tom")]
    first = sdk.chat.completions.with_raw_response.create(model=MODEL, messages=told)
    told += [
        {"role": "assistant", "content": first.parse().choices[0].message.content},
        user("And my dog Rex"),
    ]
    second = sdk.chat.completions.with_raw_response.create(model=MODEL, messages=told)
    assert first.headers["x-session-id"] == second.headers["x-session-id"]
    heard = [words(one["content"]) for one in api.requests[-1]["messages"]]
    assert sum("Tom" in one for one in heard if "You said" not in one) == 1  # once, as the cluster keeps it


def test_a_conversation_that_began_elsewhere_is_told_as_the_past(
    sdk: openai.OpenAI, api: MessagesApi
) -> None:
    told = [
        {"role": "system", "content": "Be brief."},
        user("My bird is called Pip"),
        {"role": "assistant", "content": "Nice."},
        user("What is its name?"),
    ]
    sdk.chat.completions.create(model=MODEL, messages=told)
    last = words(api.requests[-1]["messages"][-1]["content"])
    assert "Be brief." in last and "Pip" in last and last.endswith("What is its name?")


def test_tools_are_ignored_and_that_is_said(sdk: openai.OpenAI) -> None:
    tool: Any = {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
    }
    done = sdk.chat.completions.create(model=MODEL, messages=[user("Hello")], tools=[tool], max_tokens=5)
    assert done.choices[0].message.tool_calls is None
    warnings = (done.model_extra or {})["warnings"]
    assert any("tools" in one for one in warnings) and any("max_tokens" in one for one in warnings)


def test_a_question_back_is_the_answer_with_its_options(sdk: openai.OpenAI) -> None:
    done = sdk.chat.completions.create(model=MODEL, messages=[user("choose")])
    content = done.choices[0].message.content or ""
    assert "Which database?" in content and "SQLite" in content and "Postgres" in content


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"n": 2}, "One answer"),
        ({"response_format": {"type": "json_object"}}, "prose"),
        ({"temperature": 2.5}, "Temperature must be"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "nothing to answer"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "text",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_in_words(
    sdk: openai.OpenAI, more: dict[str, Any], word: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=word):
        sdk.chat.completions.create(**{"model": MODEL, "messages": [user("Hello")], **more})


def test_a_model_that_there_is_not_names_those_that_there_are(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match=MODEL) as raised:
        sdk.chat.completions.create(model="gpt-5", messages=[user("Hello")])
    assert (raised.value.code, raised.value.param) == ("model_not_found", "model")


def test_what_cannot_be_understood_is_a_bad_request_that_names_its_field(sdk: openai.OpenAI) -> None:
    wrong: Any = [{"role": "wizard", "content": "Hello"}]
    with pytest.raises(openai.BadRequestError, match="role") as raised:
        sdk.chat.completions.create(model=MODEL, messages=wrong)
    assert (raised.value.type, raised.value.param) == ("invalid_request_error", "messages.0.role")


def test_an_error_of_the_model_is_an_error_of_the_client(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError):
        sdk.chat.completions.create(model=MODEL, messages=[user("refused")])
    with pytest.raises(openai.APIError):
        list(sdk.chat.completions.create(model=MODEL, messages=[user("refused")], stream=True))


def test_who_breaks_off_stops_the_turn(sdk: openai.OpenAI, place: Site) -> None:
    session = "broken-off"
    stream = sdk.chat.completions.create(
        model=MODEL, messages=[user("forever")], stream=True, extra_headers={"X-Session-Id": session}
    )
    assert next(iter(stream)) and next(piece for piece in stream if piece.choices[0].delta.content)
    stream.close()
    rows = "SELECT state FROM turns WHERE session_id = ?"
    until(lambda: place.query(rows, session), what="the turn's row")
    assert place.query(rows, session)[0]["state"] == "stopped"


def test_another_agent_is_asked_by_its_name(sdk: openai.OpenAI, place: Site) -> None:
    place.up("planner")
    done = sdk.chat.completions.create(model="promptdock/planner", messages=[user("How?")])
    assert done.choices[0].message.content
    pieces = list(
        sdk.chat.completions.create(model="promptdock/planner", messages=[user("How?")], stream=True)
    )
    assert pieces[-1].choices[0].finish_reason == "stop"
