"""Several providers as one model: the name picks who answers, lists are shared, chains fall over."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from shared.errors import ModelError, ModelOverloaded, ModelRefused, ModelUnusable, PromptDockError
from shared.models import listing, router
from shared.models.anthropic import AnthropicModel
from shared.models.base import Answer, Delta, Model, OnDelta, Request
from shared.models.fallback import FallbackModel, Outages
from shared.models.listing import ModelList
from shared.models.ollama import OllamaModel
from shared.models.openai import OpenAIModel
from shared.models.router import ProviderLink, RouterModel
from tests.models.conftest import ask, heard
from tests.support.chat_api import ChatApi
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Step
from tests.support.ollama_api import OllamaApi


class Fixed(Model):
    """Lists and answers as it is told."""

    def __init__(self, name: str, names: Iterable[str] = (), fails: PromptDockError | None = None) -> None:
        self.name = self.called = name
        self.names, self.fails, self.asked, self.lists = list(names), fails, list[str](), 0

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        self.asked.append(request.model)
        if self.fails:
            raise self.fails
        return Answer(
            ({"type": "text", "text": self.name},), "end_turn", model=request.model, provider=self.name
        )

    async def models(self) -> list[str]:
        self.lists += 1
        if self.fails:
            raise self.fails
        return self.names

    async def check(self) -> None:
        return None

    def defers(self, model: str) -> bool:
        return self.name == "one"


class Kept:
    """A cache in memory; `claimed` are those that somebody else asks for."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.claimed: set[str] = set()

    async def read(self) -> dict[str, bytes]:
        return self.data

    async def write(self, provider: str, data: str) -> None:
        self.data[provider] = data.encode()

    async def claim(self, provider: str, seconds: int) -> bool:
        return provider not in self.claimed


def _link(model: Model, family: str = r"(?!)", recommended: str = "") -> ProviderLink:
    return ProviderLink(model.name, model.name.title(), recommended, re.compile(family), "", model)


def _router(*models: Model, cache: Kept | None = None) -> RouterModel:
    return RouterModel([_link(model, rf"{model.name}-") for model in models], cache)


async def _who(model: Model, name: str) -> str:
    return str((await model.answer(ask(model=name))).content[0]["text"])


async def test_the_name_picks_the_provider_and_of_two_the_first() -> None:
    model = _router(Fixed("one", ["a", "both"]), Fixed("two", ["b-20261001", "both", "c:latest"]))
    assert [await _who(model, name) for name in ("a", "b", "both", "c")] == ["one", "two", "one", "two"]
    assert await model.models() == ["a", "both", "b-20261001", "c:latest"]
    assert (model.defers("a"), model.defers("b")) == (True, False)


async def test_a_name_that_nobody_lists_is_refused_with_the_nearest() -> None:
    model = _router(Fixed("one", ["claude-sonnet-5-5"]), Fixed("two", ["gpt-6.1-sol"]))
    with pytest.raises(ModelUnusable, match="gpt-6-sol") as refused:
        await model.answer(ask(model="gpt-6-sol"))
    assert "gpt-6.1-sol" in refused.value.fix and "One and Two" in refused.value.why


async def test_a_name_that_is_not_on_an_old_list_is_looked_for_on_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Fixed("one", ["a"])
    model = _router(one)
    await model.look()
    one.names = ["a", "new"]
    with pytest.raises(ModelUnusable):
        await model.answer(ask(model="new"))
    assert one.lists == 1  # the list is a moment old
    monkeypatch.setattr(router, "RETRY", -1.0)
    assert await _who(model, "new") == "one"


async def test_names_of_a_provider_that_lists_nothing_go_by_how_they_begin() -> None:
    silent = Fixed("two", fails=ModelOverloaded("down"))
    model = _router(Fixed("one", ["a"]), silent)
    with pytest.raises(ModelOverloaded):
        await model.answer(ask(model="two-5"))
    assert silent.asked == ["two-5"]
    with pytest.raises(ModelUnusable, match="there is no model 'other'") as refused:
        await model.answer(ask(model="other"))
    assert "Two could not say" in refused.value.why


async def test_the_only_provider_answers_without_waiting_for_its_list() -> None:
    one = Fixed("one", ["a"])
    assert await _who(_router(one), "whatever") == "one" and one.lists == 0


async def test_lists_are_asked_for_once_and_shared() -> None:
    cache, one, other = Kept(), Fixed("one", ["a"]), Fixed("one", ["a"])
    await _router(one, cache=cache).look()
    second = _router(other, cache=cache)
    assert await second.models() == ["a"]
    assert (one.lists, other.lists) == (1, 0)
    cache.claimed.add("one")  # a list that somebody else fetches is waited for, not fetched
    cache.data["one"] = ModelList(provider="one", state="ok", models=("b",)).model_dump_json().encode()
    third = _router(Fixed("one"), cache=cache)
    assert await third.models() == ["b"]


async def test_what_cannot_be_read_in_the_cache_is_asked_for_again() -> None:
    cache, one = Kept(), Fixed("one", ["a"])
    cache.data["one"] = b'{"provider": 7}'
    assert await _router(one, cache=cache).models() == ["a"]


async def test_a_provider_that_goes_away_keeps_its_names_and_a_refused_key_does_not() -> None:
    one = Fixed("one", ["a"])
    model = _router(one)
    await model.look()
    one.fails = ModelOverloaded("gone", "nobody answers")
    await model.refresh()
    (known,) = model.known()
    assert (known.state, known.models) == ("away", ("a",)) and "gone" in known.why
    one.fails = ModelRefused("no", "invalid key")
    await model.refresh()
    (known,) = model.known()
    assert (known.state, known.models, known.why) == ("refused", (), "invalid key")
    with pytest.raises(ModelRefused):
        await model.check()


async def test_the_recommended_model_is_one_that_there_is() -> None:
    one = Fixed("one", ["newest", "older"])
    model = RouterModel([_link(one, recommended="best")])
    assert model.recommended == "best"
    await model.look()
    assert model.recommended == "newest"
    one.names = ["x", "best-20261001"]
    await model.refresh()
    assert model.recommended == "best"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("Claude-Sonnet", "claude-sonnet-5-5"), ("gpt6sol", "gpt-6.1-sol"), ("zzz", "claude-opus-5-5")],
)
def test_the_nearest_names_come_first_and_something_is_always_proposed(name: str, nearest: str) -> None:
    assert listing.near(["claude-opus-5-5", "claude-sonnet-5-5", "gpt-6.1-sol"], name)[0] == nearest


# -- chains ------------------------------------------------------------------------------------------------------


def _chain(first: Fixed, second: Fixed, patience: float = 0.2) -> FallbackModel:
    return FallbackModel(_router(first, second), Outages(patience))


@pytest.mark.parametrize(
    "error", [ModelOverloaded("One is overloaded"), ModelRefused("no key"), ModelUnusable("no credit")]
)
async def test_the_next_of_a_chain_answers_and_says_so(error: ModelError) -> None:
    deltas: list[Delta] = []
    first, second = Fixed("one", ["a"]), Fixed("two", ["b"])
    model = _chain(first, second)
    await model.models()
    first.fails = error
    answer = await model.answer(ask(model="a, b"), deltas.append)
    assert answer.content[0]["text"] == "two" and answer.model == "b"
    assert answer.notes == (f"a could not answer ({error.what}): b did",)
    assert "b is asked instead" in heard(deltas, "waiting")
    again = await model.answer(ask(model="a,b"))
    assert first.asked == ["a"] and again.notes  # it is left alone for a while, and that is said


async def test_an_error_that_is_the_requests_own_does_not_fall_over() -> None:
    first, second = Fixed("one", ["a"]), Fixed("two", ["b"])
    model = _chain(first, second)
    await model.models()
    first.fails = ModelError("it did not accept the request")
    with pytest.raises(ModelError, match="did not accept"):
        await model.answer(ask(model="a,b"))
    assert second.asked == []


async def test_where_all_fail_the_error_names_each() -> None:
    first, second = Fixed("one", ["a"]), Fixed("two", ["b"])
    model = _chain(first, second)
    await model.models()
    first.fails, second.fails = (
        ModelOverloaded("One is overloaded"),
        ModelOverloaded("Two is silent", "at all"),
    )
    with pytest.raises(ModelOverloaded, match="Two is silent") as failed:
        await model.answer(ask(model="a,b"))
    assert "a: One is overloaded" in failed.value.why


async def test_the_first_is_asked_first_again_after_its_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Fixed("one", ["a"]), Fixed("two", ["b"])
    model = _chain(first, second)
    await model.models()
    first.fails = ModelOverloaded("busy")
    monkeypatch.setattr("shared.models.fallback.REST", -1.0)
    await model.answer(ask(model="a,b"))
    first.fails = None
    assert await _who(model, "a,b") == "one"


@pytest.mark.parametrize(("asked", "minutes"), [(900.0, 15), (86_400.0, 60)])
async def test_one_that_asks_for_a_longer_rest_has_it_for_at_most_an_hour_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, asked: float, minutes: int
) -> None:
    first, second, now = Fixed("one", ["a"]), Fixed("two", ["b"]), [1_000.0]
    monkeypatch.setattr("shared.models.fallback.time", SimpleNamespace(monotonic=lambda: now[0]))
    model = _chain(first, second)
    await model.models()
    first.fails = ModelOverloaded("One is overloaded", retry_after=asked)
    answer = await model.answer(ask(model="a,b"))
    assert answer.notes == (
        f"a could not answer (One is overloaded, and is left alone for {minutes} min): b did",
    )
    first.fails = None
    now[0] += minutes * 60 - 1
    assert await _who(model, "a,b") == "two"
    now[0] += 2
    assert await _who(model, "a,b") == "one"


# -- three real adapters -----------------------------------------------------------------------------------------


@pytest.fixture
async def three() -> AsyncIterator[Callable[[], tuple[RouterModel, MessagesApi, ChatApi, OllamaApi]]]:
    """A router of the three adapters, each with a server of its own."""
    with MessagesApi() as claude, ChatApi() as gpt, OllamaApi() as local:
        models: list[Model] = [
            AnthropicModel(lambda: "k", base_url=claude.url, base=0.01, idle=5.0),
            OpenAIModel(lambda: "k", base_url=f"{gpt.url}/v1", base=0.01, idle=5.0),
            OllamaModel(lambda: "", base_url=local.url, base=0.01, idle=5.0),
        ]
        made = RouterModel([_link(model) for model in models])
        await made.warm()
        yield lambda: (made, claude, gpt, local)
        await made.close()


async def test_three_providers_at_once_each_answer_for_their_models(
    three: Callable[[], tuple[RouterModel, MessagesApi, ChatApi, OllamaApi]],
) -> None:
    model, claude, gpt, local = three()
    names = ("claude-opus-5-5", "gpt-4.1-mini", "qwen3:8b", "llama3.2")
    answers = [await model.answer(ask(model=name)) for name in names]
    assert [answer.provider for answer in answers] == ["anthropic", "openai", "ollama", "ollama"]
    assert [len(api.requests) for api in (claude, gpt, local)] == [1, 1, 2]
    assert [one.state for one in model.known()] == ["ok"] * 3


async def test_an_overloaded_one_of_three_is_stood_in_for_while_the_others_go_on(
    three: Callable[[], tuple[RouterModel, MessagesApi, ChatApi, OllamaApi]],
) -> None:
    model, claude, gpt, _ = three()
    gpt.script = lambda _body: Step(status=503)
    chain = FallbackModel(model, Outages(0.4))
    request = replace(ask(model="gpt-6.1-sol,claude-sonnet-5-5"), deadline=20.0)
    answer = await chain.answer(request)
    assert (answer.provider, answer.model) == ("anthropic", "claude-sonnet-5-5")
    assert "gpt-6.1-sol could not answer" in answer.notes[0]
    assert len(gpt.requests) > 1 and len(claude.requests) == 1


async def test_a_long_answer_is_not_cut_because_another_model_would_answer(
    three: Callable[[], tuple[RouterModel, MessagesApi, ChatApi, OllamaApi]],
) -> None:
    model, claude, gpt, _ = three()
    claude.script = lambda _body: Step(text="slowly " * 20, pace=0.05)
    answer = await FallbackModel(model, Outages(0.1)).answer(ask(model="claude-sonnet-5-5,gpt-6.1-sol"))
    assert (answer.provider, answer.notes, gpt.requests) == ("anthropic", (), [])
