"""Pauses grow with each failure, are bounded, and begin anew when the line stands."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.backoff import Backoff


async def test_pauses_grow_to_a_bound_and_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    backoff, longest = Backoff(first=0.1, most=2.0), []
    for _ in range(12):
        await backoff.pause()
        longest.append(backoff.longest)
    assert longest[:4] == [0.2, 0.4, 0.8, 1.6] and longest[-1] == 2.0
    assert all(0.02 <= pause <= most for pause, most in zip(slept, longest, strict=True))
    backoff.reset()
    assert (backoff.failures, backoff.longest) == (0, 0.1)
