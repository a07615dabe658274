"""Requests as short as tests need them, and a client that is closed afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.models.anthropic import AnthropicModel
from shared.models.base import Delta, Request
from shared.models.factory import PROVIDERS

Connect = Callable[..., AnthropicModel]


def ask(text: str = "Hello", **fields: Any) -> Request:
    """A request with one message of a person."""
    chosen: dict[str, Any] = {
        "model": PROVIDERS[0].recommended,
        "system": ("You are Chatter",),
        "deadline": 20.0,
    }
    return Request(messages=({"role": "user", "content": text},), **{**chosen, **fields})


def heard(deltas: list[Delta], kind: str) -> str:
    """All that was streamed of one kind, joined."""
    return "".join(delta.text for delta in deltas if delta.kind == kind)


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for a condition, with a bound."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Make a model that talks to a server of ours with short waits."""
    made: list[AnthropicModel] = []

    def connect(url: str, key: Callable[[], str] = lambda: "a-key", **fields: Any) -> AnthropicModel:
        model = AnthropicModel(key, base_url=url, **{"base": 0.01, "idle": 5.0, **fields})
        made.append(model)
        return model

    # A request's deadline counts the import of the library too, which takes seconds where others work.
    await connect("http://127.0.0.1:1").warm()
    yield connect
    for model in made:
        await model.close()
