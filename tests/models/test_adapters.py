"""All adapters: one suite, each with its real library against a server that speaks its protocol, well and badly."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from shared.errors import Fenced, ModelOverloaded, ModelRefused, ModelUnusable
from shared.models.anthropic import AnthropicModel
from shared.models.base import Delta, Request, ToolSpec
from shared.models.ollama import OllamaModel
from shared.models.openai import OpenAIModel
from shared.models.remote import RemoteModel
from tests.models.conftest import ask, heard, until
from tests.support.chat_api import ChatApi
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Step
from tests.support.ollama_api import OllamaApi
from tests.support.pictures import picture

PLAN = ToolSpec("consult_planner", "Ask the Planner", {"type": "object", "properties": {}})
CALLS: tuple[dict[str, Any], ...] = (
    {"name": "consult_planner", "input": {"question": 'how, with "quotes" and ü?', "more": {"a": [1, None]}}},
    {"name": "consult_planner", "input": {}},
)


@dataclass(frozen=True)
class Kind:
    """A provider as the suite knows it."""

    adapter: type[RemoteModel]
    server: type[MessagesApi]
    path: str  # behind the server's address
    model: str


KINDS = (
    Kind(AnthropicModel, MessagesApi, "", "claude-sonnet-5-5"),
    Kind(OpenAIModel, ChatApi, "/v1", "gpt-6.1-sol"),
    Kind(OllamaModel, OllamaApi, "", "qwen3:8b"),
)
Make = Callable[..., RemoteModel]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.adapter.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each provider in turn."""
    found: Kind = request.param
    return found


@pytest.fixture
async def make(kind: Kind) -> AsyncIterator[Make]:
    """Make a model that talks to a server of ours with short waits."""
    made: list[RemoteModel] = []

    def connect(
        api: MessagesApi | str, key: Callable[[], str] = lambda: "a-key", **fields: Any
    ) -> RemoteModel:
        url = api if isinstance(api, str) else api.url
        model = kind.adapter(key, base_url=url + kind.path, **{"base": 0.01, "idle": 5.0, **fields})
        made.append(model)
        return model

    await connect("http://127.0.0.1:1").warm()
    yield connect
    for model in made:
        await model.close()


def _ask(kind: Kind, text: str = "Hello", **fields: Any) -> Request:
    return ask(text, **{"model": kind.model, **fields})


async def test_an_answer_is_streamed_and_returned_whole(kind: Kind, make: Make) -> None:
    deltas: list[Delta] = []
    with kind.server([Step(text="Hello there, how can I help you?")]) as api:
        answer = await make(api).answer(_ask(kind), deltas.append)
    assert answer.content == ({"type": "text", "text": "Hello there, how can I help you?"},)
    assert (answer.stop_reason, answer.model) == ("end_turn", kind.model)
    assert (answer.provider, answer.demo, answer.notes) == (kind.adapter.name, False, ())
    assert len(deltas) > 1 and heard(deltas, "text") == "Hello there, how can I help you?"


async def test_thoughts_and_calls_come_back_as_blocks_and_go_out_again(kind: Kind, make: Make) -> None:
    deltas: list[Delta] = []
    step = Step(thinking="let me see what there is", text="I ask.", tools=CALLS)
    with kind.server([step, Step(text="done")]) as api:
        model = make(api)
        answer = await model.answer(_ask(kind, tools=(PLAN,)), deltas.append)
        thought, text, first, second = answer.content
        assert thought["thinking"] == heard(deltas, "thinking") == "let me see what there is"
        assert text == {"type": "text", "text": "I ask."}
        assert [(c["name"], c["input"]) for c in (first, second)] == [(c["name"], c["input"]) for c in CALLS]
        assert first["id"] != second["id"] and answer.stop_reason == "tool_use"
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": f"result {place}"}
            for place, call in enumerate((first, second))
        ]
        messages = (
            *_ask(kind).messages,
            {"role": "assistant", "content": list(answer.content)},
            {"role": "user", "content": [*results, {"type": "text", "text": "go on"}]},
        )
        done = await model.answer(replace(_ask(kind, tools=(PLAN,)), messages=messages))
        assert done.content[0]["text"] == "done"
        sent = api.neutral(api.requests[1])["messages"]
        assert [block["type"] for block in sent[1]["content"] if block["type"] != "thinking"] == [
            "text", "tool_use", "tool_use",
        ]  # fmt: skip
        assert [block.get("content") or block["text"] for block in sent[2]["content"]] == [
            "result 0", "result 1", "go on",
        ]  # fmt: skip


async def test_what_is_sent_again_begins_with_what_was_sent(kind: Kind, make: Make) -> None:
    request = _ask(kind, tools=(PLAN,))
    with kind.server([Step(thinking="hm", text="I ask.", tools=CALLS[:1]), Step(text="done")]) as api:
        model = make(api)
        answer = await model.answer(request)
        result = {"type": "tool_result", "tool_use_id": answer.content[-1]["id"], "content": "x"}
        more = (
            {"role": "assistant", "content": list(answer.content)},
            {"role": "user", "content": [result]},
        )
        await model.answer(replace(request, messages=(*request.messages, *more)))
        first, second = api.requests
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert (second.get("tools"), second.get("system")) == (first.get("tools"), first.get("system"))


async def test_limits_are_sent_and_a_cut_answer_says_so(kind: Kind, make: Make) -> None:
    with kind.server([Step(text="half a", stop="max_tokens")]) as api:
        answer = await make(api).answer(_ask(kind, max_tokens=777))
        assert "777" in str(api.requests[0])
    assert answer.stop_reason == "max_tokens"


@pytest.mark.parametrize("fault", ["cut", "unfinished", "garbled", "empty", "overloaded"])
async def test_a_stream_that_breaks_is_asked_again_and_its_pieces_are_void(
    kind: Kind, make: Make, fault: Any
) -> None:
    deltas: list[Delta] = []
    with kind.server([Step(text="first words", fault=fault), Step(text="whole")]) as api:
        answer = await make(api).answer(_ask(kind), deltas.append)
    assert answer.content[0]["text"] == "whole"
    kinds = [delta.kind for delta in deltas]
    after = deltas[kinds.index("waiting") :]
    assert heard(after, "text") == "whole"


async def test_silence_is_told_and_ends_the_try(kind: Kind, make: Make) -> None:
    deltas: list[Delta] = []
    with kind.server([Step(text="first", fault="stall"), Step(text="whole")]) as api:
        model = make(api, idle=0.6, quiet=0.2)
        answer = await model.answer(_ask(kind), deltas.append)
    assert answer.content[0]["text"] == "whole"
    assert "silent for" in heard(deltas, "silent") and "silent" in heard(deltas, "waiting")


@pytest.mark.parametrize("status", [429, 503, 529])
async def test_a_busy_provider_is_waited_for_as_it_asks(kind: Kind, make: Make, status: int) -> None:
    deltas: list[Delta] = []
    with kind.server([Step(status=status, retry_after=0.2), Step(text="now")]) as api:
        began = time.monotonic()
        answer = await make(api).answer(_ask(kind), deltas.append)
    assert answer.content[0]["text"] == "now" and time.monotonic() - began >= 0.2
    assert "trying again" in heard(deltas, "waiting")


async def test_one_that_stays_busy_is_given_up_at_the_deadline(kind: Kind, make: Make) -> None:
    with kind.server(lambda _body: Step(status=503)) as api, pytest.raises(ModelOverloaded):
        await make(api).answer(_ask(kind, deadline=0.5))


async def test_a_server_that_is_away_is_said(kind: Kind, make: Make) -> None:
    with pytest.raises(ModelOverloaded, match="connection"):
        await make("http://127.0.0.1:1").answer(_ask(kind, deadline=2.0))


async def test_a_key_that_is_not_taken_is_read_once_more(kind: Kind, make: Make) -> None:
    with kind.server([Step(text="ok")], keys={"a-new-key"}) as api:
        model = make(api, lambda: "a-new-key" if api.exchanges else "an-old-key")
        assert (await model.answer(_ask(kind))).content[0]["text"] == "ok"
        assert [exchange.key for exchange in api.exchanges] == ["an-old-key", "a-new-key"]
        with pytest.raises(ModelRefused) as refused:
            await make(api, lambda: "a-wrong-key").answer(_ask(kind))
        with pytest.raises(ModelRefused):
            await make(api, lambda: "a-wrong-key").check()
    assert "promptdock key set" in refused.value.fix
    assert "a-wrong-key" not in refused.value.told()


async def test_a_model_that_there_is_not_is_said_with_what_to_do(kind: Kind, make: Make) -> None:
    step = Step(status=404, message=f"model '{kind.model}' not found")
    with kind.server([step]) as api, pytest.raises(ModelUnusable) as refused:
        await make(api).answer(_ask(kind))
    assert kind.model in refused.value.why and refused.value.fix


async def test_models_are_listed(kind: Kind, make: Make) -> None:
    with kind.server() as api:
        model = make(api)
        assert await model.models() == list(api.models)
        await model.check()


async def test_what_is_not_ours_any_more_is_not_sent(kind: Kind, make: Make) -> None:
    async def gone() -> None:
        raise Fenced("lost")

    with kind.server([Step(text="bought")]) as api:
        with pytest.raises(Fenced):
            await make(api).answer(_ask(kind, ours=gone))
        assert api.requests == []


async def test_cancelling_closes_the_connection(kind: Kind, make: Make) -> None:
    deltas: list[Delta] = []
    with kind.server([Step(text="many words " * 50, pace=0.05)]) as api:
        task = asyncio.create_task(make(api).answer(_ask(kind), deltas.append))
        await until(lambda: deltas)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: api.exchanges[0].left)


async def test_thoughts_of_other_models_are_not_sent(kind: Kind, make: Make) -> None:
    foreign = [
        {"type": "thinking", "thinking": "a foreign thought", "model": "somebody-else"},
        {"type": "text", "text": "words"},
        {"type": "tool_use", "id": "call_12345678", "name": "consult_planner", "input": {}},
    ]
    result = {"type": "tool_result", "tool_use_id": "call_12345678", "content": "x"}
    messages = (
        *_ask(kind).messages,
        {"role": "assistant", "content": foreign},
        {"role": "user", "content": [result]},
    )
    with kind.server([Step(text="ok")]) as api:
        await make(api).answer(replace(_ask(kind, tools=(PLAN,)), messages=messages))
        assert "a foreign thought" not in str(api.requests[0])


async def test_what_a_model_used_costs_what_it_costs(kind: Kind, make: Make) -> None:
    used = {"input_tokens": 1000, "output_tokens": 200, "cache_read_input_tokens": 30_000}
    with kind.server([Step(text="ok", usage=used)]) as api:
        usage = (await make(api).answer(_ask(kind))).usage
    if kind.adapter is OllamaModel:  # it knows no cache that costs, and nothing costs
        assert (usage.input, usage.output, usage.cost) == (1000, 200, 0.0)
        return
    assert (usage.input, usage.output, usage.cache_read) == (1000, 200, 30_000)
    assert 0.002 < usage.cost < 0.05


LOOK = (
    {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture().block()]},
)  # fmt: skip


async def test_a_picture_goes_to_a_model_that_sees(kind: Kind, make: Make) -> None:
    sees: dict[str, Any] = {"sees": (kind.model,)} if kind.server is OllamaApi else {}
    with kind.server([Step(text="A square.")], **sees) as api:
        answer = await make(api).answer(replace(_ask(kind), messages=LOOK))
    assert picture().data in json.dumps(api.requests[0]) and answer.notes == ()


async def test_a_model_that_cannot_see_answers_the_words_and_the_person_is_told(
    kind: Kind, make: Make
) -> None:
    if kind.server is MessagesApi:
        pytest.skip("every model of Anthropic sees")
    blind: dict[str, Any] = {"refuses": ("images",)} if kind.server is ChatApi else {}
    with kind.server([Step(text="I cannot see it."), Step(text="Still not.")], **blind) as api:
        model = make(api)
        for _ in range(2):
            answer = await model.answer(replace(_ask(kind), messages=LOOK))
            [note] = answer.notes
            assert note.startswith(f"{kind.model} cannot see")
        assert "cannot see it" in json.dumps(api.requests[-1]) and picture().data not in json.dumps(
            api.requests[-1]
        )
        assert len(api.requests) == (3 if kind.server is ChatApi else 2), "it is found out once"
