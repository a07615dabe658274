"""Retries: what is tried again, how often, how long, and who hears of it."""

from __future__ import annotations

import asyncio

import pytest

from shared.errors import ModelError, ModelOverloaded
from shared.models.retry import Naps, persist
from tests.support.clock import own_clock


class Flaky:
    """Fails as told, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "ok"


def busy(retry_after: float | None = None) -> ModelOverloaded:
    return ModelOverloaded("it is busy", "HTTP 529", "", retry_after)


@own_clock
async def test_an_answer_at_once_is_not_waited_for() -> None:
    call, told = Flaky(), list[str]()
    assert await persist(call, deadline=5, tell=told.append) == "ok"
    assert (call.calls, told) == (1, [])


@own_clock
async def test_every_wait_is_told_with_how_long_it_lasts_already() -> None:
    call, told = Flaky(busy(), busy(retry_after=1.0), busy()), list[str]()
    assert await persist(call, deadline=5, tell=told.append, base=0.01) == "ok"
    assert told[0] == "it is busy; trying again in 1 s"
    assert told[2] == "it is busy for 1 s now; trying again in 1 s"


@own_clock
async def test_an_overload_of_many_tries_is_outlasted() -> None:
    call = Flaky(*(busy() for _ in range(40)))
    assert await persist(call, deadline=3600) == "ok"
    assert call.calls == 41


@own_clock
async def test_after_its_patience_nothing_is_begun_and_what_is_under_way_goes_on() -> None:
    async def slow() -> str:
        await asyncio.sleep(100)
        return "late"

    assert await persist(slow, deadline=600, patience=60) == "late"
    began, call = asyncio.get_running_loop().time(), Flaky(*(busy() for _ in range(999)))
    with pytest.raises(ModelOverloaded):
        await persist(call, deadline=600, patience=60)
    assert asyncio.get_running_loop().time() - began <= 60


@own_clock
async def test_the_deadline_is_the_end_and_the_last_failure_says_how_often_it_was_tried() -> None:
    call = Flaky(*(busy() for _ in range(10_000)))
    with pytest.raises(ModelOverloaded, match=r"HTTP 529; tried \d+ times in 0 s") as caught:
        await persist(call, deadline=0.3, base=0.01)
    assert call.calls > 4
    assert caught.value.fix


@own_clock
async def test_so_many_tries_are_the_end_where_somebody_sits_and_waits() -> None:
    call = Flaky(*(busy() for _ in range(9)))
    with pytest.raises(ModelOverloaded, match="tried 4 times"):
        await persist(call, deadline=5, tries=4, base=0.01)
    assert call.calls == 4


@own_clock
async def test_what_is_no_overload_is_raised_at_once() -> None:
    call = Flaky(ModelError("wrong request"))
    with pytest.raises(ModelError, match="wrong request"):
        await persist(call, deadline=5)
    assert call.calls == 1


@own_clock
async def test_a_wait_is_at_least_what_was_asked_for() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await persist(Flaky(busy(retry_after=0.3)), deadline=5, base=0.01)
    assert loop.time() - began >= 0.3


@own_clock
async def test_waits_differ_from_call_to_call() -> None:
    loop = asyncio.get_running_loop()

    async def waited() -> float:
        began = loop.time()
        await persist(Flaky(busy()), deadline=5, base=0.2)
        return loop.time() - began

    spans = await asyncio.gather(*(waited() for _ in range(20)))
    assert max(spans) - min(spans) > 0.05
    assert max(spans) < 1.0


@own_clock
async def test_a_deadline_ends_a_call_that_hangs() -> None:
    async def hang() -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(ModelOverloaded, match=r"within 0\.1 s"):
        await persist(hang, deadline=0.1)


@own_clock
async def test_a_deadline_that_ends_a_later_try_says_what_was_wrong_with_the_one_before() -> None:
    failures = [busy()]

    async def call() -> str:
        if failures:
            raise failures.pop()
        await asyncio.Event().wait()
        return ""

    with pytest.raises(ModelOverloaded, match=r"within 5 s.*it is busy.*HTTP 529"):
        await persist(call, deadline=5)


@own_clock
async def test_who_waits_and_is_woken_tries_at_once() -> None:
    naps, call, told = Naps(), Flaky(busy(retry_after=100)), list[str]()
    loop = asyncio.get_running_loop()
    loop.call_later(1, naps.wake)
    assert await persist(call, deadline=500, tell=told.append, naps=naps) == "ok"
    assert loop.time() == 1


@own_clock
async def test_a_wait_that_would_pass_the_deadline_is_not_begun() -> None:
    call = Flaky(busy(retry_after=60))
    with pytest.raises(ModelOverloaded, match="left alone for 60 s") as caught:
        await asyncio.wait_for(persist(call, deadline=2), 1)
    assert (call.calls, caught.value.retry_after) == (1, 60)
