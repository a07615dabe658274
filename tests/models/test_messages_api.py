"""The Messages server of ours: rules decide, what the API refuses is refused, and it runs by itself."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ModelError
from shared.models.base import ModelMessage, ToolSpec
from tests.models.conftest import Connect, ask
from tests.support.messages_api import MessagesApi
from tests.support.messages_check import complaint
from tests.support.messages_script import Rules, Step

RULES: list[dict[str, Any]] = [
    {
        "user": "PLAN",
        "system": "chatter",
        "steps": [
            {
                "tools": [
                    {
                        "name": "consult_planner",
                        "input": {"question": "{{user}}", "deep": [{"x": "{{user}}"}]},
                    }
                ]
            },
            {"text": "The plan: {{result.plan.0.title}}", "tries": [{"status": 529}]},
        ],
    },
    {"tool": "submit_plan", "steps": [{"text": "I plan"}]},
    {"user": "fail", "steps": [{"status": 400, "message": "no"}]},
]
PLANNED = json.dumps({"plan": [{"title": "Do it"}]})


def body(*messages: ModelMessage, **fields: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": list(messages), **fields}


def user(*content: Any) -> ModelMessage:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def result(name: str, content: str = "{}") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def used(name: str) -> ModelMessage:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": "t", "input": {}}]}


async def test_rules_answer_by_the_rounds_since_the_last_message(connect: Connect) -> None:
    with MessagesApi(Rules(RULES)) as api:
        model = connect(api.url)
        request = ask("[from Ann]: plan a page", tools=(ToolSpec("consult_planner", "", {"type": "object"}),))
        first = await model.answer(request)
        call = first.content[0]
        question = "[from Ann]: plan a page"
        assert call["input"] == {"question": question, "deep": [{"x": question}]}
        messages = (
            *request.messages,
            {"role": "assistant", "content": list(first.content)},
            user(result(call["id"], PLANNED)),
        )
        second = await model.answer(type(request)(**{**vars(request), "messages": messages}))
        assert second.content[0]["text"] == "The plan: Do it"
        assert len(api.requests) == 3  # the second step failed once before it answered


def test_a_rule_fits_by_user_system_and_tool() -> None:
    rules = Rules(RULES)
    assert rules(body(user("plan"), system="You are Chatter")).tools
    assert rules(body(user("plan"), system="You are Planner")).text == "ok"
    assert rules(body(user("plan"), tools=[{"name": "submit_plan"}])).text == "I plan"
    assert rules(body(user("fail"))).status == 400


def test_the_last_step_is_repeated_and_notes_are_nobodys_words() -> None:
    rules = Rules([{"user": "go", "steps": [{"text": "one"}, {"text": "two"}]}])
    talk = [user("go"), used("a"), user(result("a")), used("b"), user("[continue]")]
    assert [rules(body(*talk[:n])).text for n in (1, 3, 5)] == ["one", "two", "two"]


def test_a_request_made_again_in_the_next_minute_is_the_same_one() -> None:
    rules = Rules([{"user": "plan", "steps": [{"text": "done", "tries": [{"status": 529}]}]}])
    made = [rules(body(user("plan"), system=f"2026-11-22 09:{at} UTC")) for at in (13, 14)]
    assert [step.status for step in made] == [529, 200]


def test_words_beside_the_result_of_an_escalation_are_the_next_message() -> None:
    rules = Rules([{"user": "SQLite", "steps": [{"text": "noted"}]}])
    call = {"type": "tool_use", "id": "e", "name": "escalate_to_human", "input": {}}
    answered = user(result("e"), {"type": "text", "text": "[from Ann]: SQLite"})
    assert rules(body(user("decide"), {"role": "assistant", "content": [call]}, answered)).text == "noted"


def test_a_step_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValueError, match="no field called txet"):
        Rules([{"steps": [{"txet": "hello"}]}])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (body(), "messages: Field required"),
        (body(user("a"), temperature=1), "temperature is not supported"),
        (body(user("a"), thinking={"type": "enabled", "budget_tokens": 9}), "thinking.type.enabled"),
        (body({"role": "assistant", "content": "a"}, user("a")), "first message"),
        (body(user("a"), {"role": "assistant", "content": "{"}), "prefill"),
        (body(user("a"), used("x"), user("b")), "`tool_use` ids without `tool_result`"),
        (body(user("a"), used("x")), "has no `tool_result`"),
        (
            body(user("a"), {"role": "assistant", "content": "b"}, user(result("y"))),
            "unexpected `tool_use_id`",
        ),
        (body(user("a"), used("x"), user({"type": "text", "text": "b"}, result("x"))), "must come first"),
        (body(user(" ")), "non-whitespace"),
        (body(user("a"), tools=[{"name": "t"}, {"name": "t"}]), "unique"),
        (body(user("a"), tools=[{"name": "a b"}]), "is no name"),
    ],
)
def test_what_the_api_refuses_is_refused(wrong: dict[str, Any], why: str) -> None:
    assert why in complaint(wrong)


def test_what_the_api_takes_is_taken() -> None:
    assert complaint(body(user("a"), used("x"), user(result("x"), {"type": "text", "text": "b"}))) == ""
    assert complaint({**body(user("a"), temperature=1), "model": "claude-haiku-4-5"}) == ""


async def test_a_request_that_is_wrong_reaches_the_caller_as_an_error(connect: Connect) -> None:
    with MessagesApi() as api, pytest.raises(ModelError, match="non-whitespace"):
        await connect(api.url).answer(ask(" "))


async def test_a_script_that_breaks_is_told(connect: Connect) -> None:
    def broken(_body: dict[str, Any]) -> Step:
        raise KeyError("oops")

    with pytest.raises(RuntimeError, match="the script failed"), MessagesApi(broken) as api:
        model = connect(api.url)
        with suppress(ModelError):
            await model.answer(ask(deadline=4.0))


async def test_it_runs_as_a_process_of_its_own_and_records(connect: Connect, tmp_path: Path) -> None:
    script, record = tmp_path / "rules.json", tmp_path / "requests.jsonl"
    script.write_text(json.dumps([{"steps": [{"text": "from the other side"}]}]))
    command = [
        sys.executable,
        "-m",
        "tests.support.messages_api",
        "--script",
        str(script),
        "--record",
        str(record),
    ]
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=root)
    try:
        assert process.stdout
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        found = re.search(r"http://127\.0\.0\.1:\d+", line.decode())
        assert found
        answer = await connect(found[0]).answer(ask("over there"))
        assert answer.content[0]["text"] == "from the other side"
        [kept] = record.read_text().splitlines()
        assert json.loads(kept)["body"]["messages"] == [user("over there")]
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), 10)
