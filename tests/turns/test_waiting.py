"""Waiting inside a turn for what somebody else gives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from shared.errors import BusUnreachable, Fenced
from shared.turns import waiting
from shared.turns.queue import Queue
from shared.turns.turn import Turn
from shared.turns.waiting import wait_for
from tests.turns.ground import claimed, mail

AWAY = BusUnreachable("Redis does not answer", "it is away")


@pytest.fixture
async def turn(queue: Queue) -> Turn:
    await queue.post(mail("m1"))
    return Turn(queue, await claimed(queue))


def soon(seconds: float) -> float:
    return time.monotonic() + seconds


class Check:
    """Finds one thing after another, then the last one for ever."""

    def __init__(self, *found: str | Exception | None) -> None:
        self._found: Iterator[str | Exception | None] = chain(found, repeat(found[-1]))
        self.times = 0

    async def __call__(self) -> str | None:
        self.times += 1
        found = next(self._found)
        if isinstance(found, Exception):
            raise found
        return found


async def test_what_is_there_already_is_not_waited_for(turn: Turn) -> None:
    check = Check("yes")
    assert (await wait_for(turn, check, soon(-1)), check.times) == ("yes", 1)


async def test_a_wake_up_lets_it_look_at_once_and_takes_in_what_joined(queue: Queue, turn: Turn) -> None:
    async def joined() -> str | None:
        return next((entry.id for entry in turn.given if entry.id == "m2"), None)

    waits = asyncio.create_task(wait_for(turn, joined, soon(60), every=60))
    await queue.post(mail("m2", place="join"))
    turn.wake_up.set()
    assert await asyncio.wait_for(waits, 10) == "m2"


async def test_without_a_wake_up_it_looks_now_and_then(turn: Turn) -> None:
    assert await asyncio.wait_for(wait_for(turn, Check(None, None, "yes"), soon(60), every=0.01), 10) == "yes"


async def test_nothing_is_found_when_its_time_has_come(turn: Turn) -> None:
    check = Check(None)
    assert await asyncio.wait_for(wait_for(turn, check, soon(0.05), every=60), 10) is None
    assert check.times == 2


async def test_what_came_while_redis_was_away_counts_though_the_time_is_over(
    turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "EVERY", 0.01)
    assert await asyncio.wait_for(wait_for(turn, Check(AWAY, AWAY, "yes"), soon(-1)), 10) == "yes"


async def test_a_wake_up_whose_look_found_redis_away_is_not_lost(
    queue: Queue, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "EVERY", 0.01)
    looks, look = iter([AWAY]), turn.look

    async def once_away() -> None:
        if (error := next(looks, None)) is not None:
            turn.wake_up.clear()
            raise error
        await look()

    async def joined() -> str | None:
        return next((entry.id for entry in turn.given if entry.id == "m2"), None)

    monkeypatch.setattr(turn, "look", once_away)
    await queue.post(mail("m2", place="join"))
    turn.wake_up.set()
    assert await asyncio.wait_for(wait_for(turn, joined, soon(60), every=60), 10) == "m2"


async def test_whoever_lost_the_lease_waits_no_longer(turn: Turn) -> None:
    turn.wake_up.set()
    turn.lost.set()
    with pytest.raises(Fenced):
        await asyncio.wait_for(wait_for(turn, Check(None), soon(60), every=60), 10)
