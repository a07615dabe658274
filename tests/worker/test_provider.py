"""The model that is configured now: what `.env` says later counts for running workers, without a restart."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ModelRefused, ModelUnusable
from shared.models.base import Answer, Request
from shared.settings import load
from shared.worker.provider import ReloadingModel, keep
from tests.house.tree import variables
from tests.models.conftest import ask, until
from tests.support.chat_api import ChatApi
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Step

KEY, OTHER = "sk-ant-api03-one-for-a-test", "sk-ant-api03-another-for-a-test"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `.env` of a data folder, which counts."""
    for name in variables():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROMPTDOCK_HOME", str(tmp_path))
    made = tmp_path / ".env"
    made.touch(0o600)
    return made


@pytest.fixture
async def choice(file: Path) -> AsyncIterator[ReloadingModel]:
    made = ReloadingModel(load(), load)
    yield made
    await made.close()


def _write(file: Path, **values: str) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1_000_000))


async def test_a_key_and_an_address_that_are_set_later_are_taken_up(
    file: Path, choice: ReloadingModel
) -> None:
    assert choice.demo
    with MessagesApi(keys={KEY}) as one, MessagesApi(keys={OTHER}) as two:
        _write(file, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=one.url)
        assert not choice.demo
        await choice.check()
        _write(file, ANTHROPIC_API_KEY=OTHER, ANTHROPIC_BASE_URL=two.url)
        await choice.check()
        _write(file, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=one.url)
        await choice.check()
    _write(file, LOG_LEVEL="info")
    assert choice.demo
    assert (await choice.answer(Request(model="demo", system="", messages=[], max_tokens=10))).model


async def test_a_file_that_cannot_be_used_leaves_the_model_as_it_is(
    file: Path, choice: ReloadingModel
) -> None:
    _write(file, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL="nonsense")
    assert choice.demo


async def test_a_key_that_is_changed_is_tried_and_its_models_are_listed_anew(
    file: Path, choice: ReloadingModel
) -> None:
    with ChatApi(keys={OTHER}) as one, MessagesApi(keys={KEY}) as two:
        both = {"OPENAI_BASE_URL": f"{one.url}/v1", "ANTHROPIC_BASE_URL": two.url}
        _write(file, OPENAI_API_KEY=KEY, ANTHROPIC_API_KEY=KEY, **both)
        await choice.look()
        assert await choice.models() == list(two.models)
        with pytest.raises(ModelUnusable, match="OpenAI could not say"):
            await choice.need("other-1")
        _write(file, OPENAI_API_KEY=OTHER, ANTHROPIC_API_KEY=KEY, **both)
        await choice.look()
        assert await choice.models() == [*two.models, *one.models]
        assert (choice.speaker("o4-mini"), choice.speaker("claude-opus-5-5")) == ("OpenAI", "Claude")
        assert (await choice.answer(ask(model="gone-1,o4-mini"))).provider == "openai", "a chain may be named"


async def test_a_key_that_is_set_is_tried_as_soon_as_anybody_looks_at_the_model(
    file: Path, choice: ReloadingModel
) -> None:
    keeping = asyncio.create_task(keep(choice))
    try:
        with MessagesApi(keys={KEY}) as api:
            _write(file, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=api.url)
            assert choice.name == "anthropic"
            await until(lambda: any(one.path == api.lists_at for one in api.exchanges))
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def test_the_demo_model_says_which_model_did_not_answer(choice: ReloadingModel) -> None:
    await choice.look()
    answer = await choice.answer(ask(model="gpt-6.1-sol"))
    assert answer.demo and "not gpt-6.1-sol" in answer.notes[0]
    with pytest.raises(ModelUnusable, match="promptdock key set"):
        await choice.need("gpt-6.1-sol")


async def _waits(choice: ReloadingModel, **fields: Any) -> tuple[asyncio.Task[Answer], list[str]]:
    """A call that waits to try again for an hour, unless it is woken, and what it was told."""
    told: list[str] = []
    request = ask(**{"deadline": 7200.0, **fields})
    task = asyncio.create_task(choice.answer(request, lambda delta: told.append(delta.text)))
    await until(lambda: told or task.done())
    return task, told


async def _woken(choice: ReloadingModel, task: asyncio.Task[Answer]) -> Answer:
    assert choice.name  # as a heartbeat asks for it: who looks at the model finds out what changed
    return await asyncio.wait_for(task, 20)


LATER = Step(status=529, retry_after=3600)


async def test_a_call_that_waits_for_a_provider_whose_key_is_taken_away_ends_with_a_clear_word(
    file: Path, choice: ReloadingModel
) -> None:
    with MessagesApi([LATER]) as api:
        _write(file, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=api.url)
        task, _ = await _waits(choice)
        _write(file, LOG_LEVEL="info")
        with pytest.raises(ModelRefused, match=r"Anthropic is not asked any more.*taken away meanwhile"):
            await _woken(choice, task)
        assert len(api.requests) == 1


async def test_of_a_chain_the_next_one_answers_where_the_first_ones_key_is_taken_away(
    file: Path, choice: ReloadingModel
) -> None:
    within = Step(status=529, retry_after=40)  # of the minute after which the next one is asked anyway
    with MessagesApi([within]) as one, ChatApi() as two:
        rest = {"OPENAI_API_KEY": OTHER, "OPENAI_BASE_URL": f"{two.url}/v1"}
        _write(file, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=one.url, **rest)
        task, _ = await _waits(choice, model="claude-sonnet-5-5,gpt-6.1-sol")
        _write(file, **rest)
        answer = await _woken(choice, task)
        assert answer.provider == "openai" and "Anthropic is not asked any more" in answer.notes[0]


async def test_a_call_that_waits_tries_again_at_once_with_a_key_that_was_changed(
    file: Path, choice: ReloadingModel
) -> None:
    with MessagesApi([LATER, Step(text="Here.")]) as api:
        _write(file, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=api.url)
        task, _ = await _waits(choice)
        _write(file, ANTHROPIC_API_KEY=OTHER, ANTHROPIC_BASE_URL=api.url)
        await _woken(choice, task)
        assert [one.key for one in api.exchanges if one.path == api.answers_at] == [KEY, OTHER]


async def test_a_call_that_waits_moves_to_another_address_that_is_set_meanwhile(
    file: Path, choice: ReloadingModel
) -> None:
    with MessagesApi([LATER]) as one, MessagesApi([Step(text="Here.")]) as two:
        _write(file, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=one.url)
        task, told = await _waits(choice)
        _write(file, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=two.url)
        await _woken(choice, task)
        assert "asked anew" in told[1] and len(two.requests) == 1
