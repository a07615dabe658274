"""What chat.completions has of its own: parameters that models refuse, odd ids, images, servers without a key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.errors import ModelError, ModelUnusable
from shared.models.anthropic import AnthropicModel
from shared.models.base import ToolSpec
from shared.models.ollama import OllamaModel
from shared.models.openai import OpenAIModel
from shared.models.remote import RemoteModel
from tests.models.conftest import ask
from tests.support.chat_api import ChatApi
from tests.support.messages_script import Step
from tests.support.ollama_api import OllamaApi

Make = Callable[..., OpenAIModel]
TOOL = ToolSpec("look", "Look", {"type": "object", "properties": {}})
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Make a model that talks to a server of ours."""
    made: list[OpenAIModel] = []

    def connect(api: ChatApi, key: str = "a-key") -> OpenAIModel:
        made.append(OpenAIModel(lambda: key, base_url=f"{api.url}/v1", base=0.01, idle=5.0))
        return made[-1]

    yield connect
    for model in made:
        await model.close()


async def test_a_temperature_that_the_model_refuses_is_left_out_and_that_is_said(make: Make) -> None:
    with ChatApi(refuses=["temperature", "max_tokens"]) as api:
        model = make(api)
        first = await model.answer(ask(model="o4-mini", temperature=0.2, max_tokens=55))
        again = await model.answer(ask(model="o4-mini", temperature=0.2))
        other = await model.answer(ask(model="o4-mini"))
        asked = api.requests
    assert first.notes == again.notes == ("o4-mini takes no temperature: 0.2 was left out",)
    assert other.notes == ()
    assert asked[2]["max_completion_tokens"] == 55 and "temperature" not in asked[2]
    assert len(asked) == 5  # what is known to be refused is not tried again


async def test_a_temperature_that_is_taken_is_sent_and_nothing_is_said(make: Make) -> None:
    with ChatApi() as api:
        answer = await make(api).answer(ask(model="gpt-4.1-mini", temperature=0.2))
        assert (api.requests[0]["temperature"], answer.notes) == (0.2, ())


@pytest.mark.parametrize(("kind", "most"), [(AnthropicModel, 1), (OpenAIModel, 2)])
async def test_a_temperature_above_the_provider_s_is_refused_in_words_and_nothing_is_sent(
    kind: type[RemoteModel], most: float
) -> None:
    model = kind(lambda: "sk-test-0000", base_url="http://127.0.0.1:9")
    try:
        with pytest.raises(ModelError, match=f"takes 0 to {most}"):
            await model.answer(ask(temperature=most + 0.5))
    finally:
        await model.close()


async def test_an_ollama_server_takes_any_temperature() -> None:
    with OllamaApi() as served:
        model = OllamaModel(lambda: "", base_url=served.url)
        await model.answer(ask(temperature=3))
        await model.close()
        assert served.requests[0]["options"]["temperature"] == 3


async def test_a_server_without_usage_in_its_stream_answers_all_the_same(make: Make) -> None:
    with ChatApi([Step(text="hello")], refuses=["stream_options"]) as api:
        answer = await make(api).answer(ask())
    assert answer.content[0]["text"] == "hello" and answer.usage.input == 0


async def test_a_server_of_ones_own_needs_no_key(make: Make) -> None:
    with ChatApi([Step(text="hello")]) as api:
        assert (await make(api, key="").answer(ask())).content[0]["text"] == "hello"


async def test_calls_without_ids_or_with_short_ones_get_ids_of_ours(make: Make) -> None:
    calls = ({"name": "look", "id": "0", "input": {}}, {"name": "look", "id": "", "input": {"a": 1}})
    with ChatApi([Step(tools=calls)]) as api:
        answer = await make(api).answer(ask(tools=(TOOL,)))
    ids = [block["id"] for block in answer.content]
    assert len(set(ids)) == 2 and all(len(id) >= 8 for id in ids)


@pytest.mark.parametrize("given", ['{"a": 1', "[1]", "nonsense"])
async def test_arguments_that_are_no_object_reach_the_tool_as_they_are(make: Make, given: str) -> None:
    with ChatApi([Step(tools=({"name": "look", "arguments": given},))]) as api:
        answer = await make(api).answer(ask(tools=(TOOL,)))
    assert list(answer.content[0]["input"]) == ["unreadable_arguments"]


async def test_calls_beside_an_ordinary_end_are_run(make: Make) -> None:
    with ChatApi([Step(tools=({"name": "look"},), stop="stop")]) as api:
        assert (await make(api).answer(ask(tools=(TOOL,)))).stop_reason == "tool_use"


async def test_images_are_sent_where_blocks_have_them(make: Make) -> None:
    content = [{"type": "text", "text": "what is this?"}, IMAGE]
    request: dict[str, Any] = {**vars(ask()), "messages": ({"role": "user", "content": content},)}
    with ChatApi() as api:
        await make(api).answer(type(ask())(**request))
        parts = api.requests[0]["messages"][-1]["content"]
    assert parts[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    with OllamaApi(sees=(ask().model,)) as served:
        model = OllamaModel(lambda: "", base_url=served.url)
        await model.answer(type(ask())(**request))
        await model.close()
        assert served.requests[0]["messages"][-1]["images"] == ["aGk="]


async def test_a_thought_goes_back_with_its_calls_to_the_model_that_had_it(make: Make) -> None:
    thought = {"type": "thinking", "thinking": "first I look", "model": "deep-1"}
    calls = {"type": "tool_use", "id": "call_12345678", "name": "look", "input": {}}
    messages = (
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [thought, calls]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": calls["id"], "content": "x"}]},
    )
    with ChatApi() as api:
        model = make(api)
        for name in ("deep-1", "other-1"):
            await model.answer(type(ask())(**{**vars(ask()), "model": name, "messages": messages}))
        told = [request["messages"][2].get("reasoning_content") for request in api.requests]
    assert told == ["first I look", None]


async def test_credit_that_is_spent_is_no_overload(make: Make) -> None:
    step = Step(status=429, error="insufficient_quota", message="You exceeded your current quota")
    with ChatApi([step]) as api, pytest.raises(ModelUnusable, match="credit"):
        await make(api).answer(ask())


async def test_ollama_is_asked_for_a_context_that_holds_the_prompt() -> None:
    with OllamaApi() as api:
        model = OllamaModel(lambda: "", base_url=f"{api.url}/v1", context=9000)
        await model.answer(ask(model="qwen3:8b", temperature=0.3, max_tokens=66))
        await model.close()
        assert api.requests[0]["options"] == {"num_ctx": 9000, "num_predict": 66, "temperature": 0.3}


async def test_a_model_of_ollama_that_takes_no_tools_says_so() -> None:
    step = Step(status=400, message="registry.ollama.ai/library/tiny:latest does not support tools")
    with OllamaApi([step]) as api:
        model = OllamaModel(lambda: "", base_url=api.url)
        with pytest.raises(ModelUnusable, match="takes no tools"):
            await model.answer(ask(model="tiny", tools=(TOOL,)))
        await model.close()
