"""A model call is booked although the budget cannot be reached for a while."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog

from shared.errors import BusUnreachable
from shared.models.base import Usage
from shared.worker.budgets.meter import Meter


class BookedLedger:
    def __init__(self, failures: int) -> None:
        self.failures, self.charged = failures, [""]

    async def charge(self, key: str, cost: float, tokens: int, **_: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise BusUnreachable("Redis is away")
        self.charged.append(f"{key} {cost} {tokens}")


async def booked(monkeypatch: pytest.MonkeyPatch, failures: int) -> tuple[list[str], list[float], int]:
    """(what was charged, the pauses, how many warnings)"""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    ledger = BookedLedger(failures)
    turn = SimpleNamespace(queue=SimpleNamespace(agent="planner"), id="t", task_id=None)
    meter = cast(Any, SimpleNamespace(_ledger=ledger, _turn=turn, _session="s"))
    with structlog.testing.capture_logs() as logs:
        await Meter._book(meter, 3, Usage(input=2, output=5, cost=0.5), 1.0, "shop")
    return ledger.charged[1:], pauses, len(logs)


async def test_a_call_is_booked_once_after_pauses_that_double(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await booked(monkeypatch, 0) == (["planner:t:3 0.5 7"], [], 0)
    assert await booked(monkeypatch, 4) == (["planner:t:3 0.5 7"], [0.2, 0.4, 0.8, 1.6], 0)


async def test_after_five_tries_the_log_says_so_and_the_turn_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await booked(monkeypatch, 9) == ([], [0.2, 0.4, 0.8, 1.6], 1)
