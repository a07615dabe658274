"""What came by an event stands behind what was said before it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateways.cli.commands.messages.waiting import Order
from shared.bus.keys import Names
from shared.client import Client


def _client(newest: str) -> Client:
    """One whose stream of outputs ends so."""

    async def command(*_words: object) -> list[Any]:
        return [(newest.encode(), [])]

    return cast(Client, SimpleNamespace(names=Names(), bus=SimpleNamespace(command=command)))


async def test_that_an_agent_answered_is_told_behind_that_it_was_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    order = Order()
    order.shown("99-9")
    order.tell(_client("100-1"), "… planner answered")
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # it has looked where the stream ends, and waits
    order.shown("100-0")
    await asyncio.sleep(0)
    assert capsys.readouterr().err == ""
    order.shown("100-1")
    await order.end()
    assert capsys.readouterr().err == "… planner answered\n"


async def test_it_is_told_all_the_same_where_nothing_is_heard(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateways.cli.commands.messages.waiting.SETTLE", 0.01)
    order = Order()
    order.tell(_client("100-1"), "… planner answered")
    await order.end()
    assert capsys.readouterr().err == "… planner answered\n"
