"""Money on a real Redis: calls counted once, budgets raised once; and what tasks are expected to need."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.store.row import derived
from shared.tasks.estimate import Estimate, PastTask, estimate
from shared.turns.lease import Lease
from shared.worker.budgets.ledger import Ledger, today

SHOP, BLOG = derived("project", "shop"), derived("project", "blog")


async def test_a_call_counts_once_in_every_scope_however_often_it_is_reported(
    redis: RedisBus, names: Names
) -> None:
    money = Ledger(redis, names)
    given = [money.charge("chatter:m1:0", 0.25, 100, project="p", task="t", session="s") for _ in range(5)]
    assert sorted(await asyncio.gather(*given)) == [False] * 4 + [True]
    await money.charge("chatter:m1:1", 0.5, 50, project="p", session="other")
    spent = await money.spent("p", "t", "s")
    assert (spent.day, spent.project, spent.task, spent.session) == (0.75, 0.75, 0.25, 0.25)
    window = await money.window()
    assert (window.cost, window.tokens, window.calls) == (0.75, {"p": 150.0}, {"p": 2})
    assert window.projects == {"p": 0.75}


async def test_a_budget_is_raised_once_by_one_word(redis: RedisBus, names: Names) -> None:
    money = Ledger(redis, names)
    for key in ("m1", "m1", "m2"):
        await money.allow("day", today(), 2.0, key)
    assert (await money.spent()).raised_day == 4.0
    assert (await money.window()).raised == 4.0


async def test_a_lease_has_one_holder_and_each_new_one_a_higher_epoch(redis: RedisBus, names: Names) -> None:
    first, second = (Lease(redis, names, "work", holder, 300) for holder in ("a", "b"))
    took = await first.take()
    assert took > 0 and await second.take() == 0
    assert await first.take() == took
    async with asyncio.timeout(10):
        while not (later := await second.take()):  # the first one has died
            await asyncio.sleep(0.02)
    assert later > took
    assert await first.take() == 0
    await first.drop()  # it is not its own to drop
    assert await first.take() == 0
    await second.drop()
    assert await first.take() > later


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        ([], Estimate()),
        ([PastTask(BLOG, "frontend", 9.0, 90)], Estimate(9.0, 90, 1)),
        ([PastTask(SHOP, "backend", n, n * 10) for n in (1.0, 2.0, 30.0)] + [PastTask(BLOG, "x", 7.0, 7)] * 9,
         Estimate(2.0, 20, 3)),
        ([PastTask(BLOG, "backend", 4.0, 40)] * 3 + [PastTask(SHOP, "backend", 1.0, 10)], Estimate(4.0, 40, 4)),
        ([PastTask(SHOP, "backend", 0.0, 0)] * 5, Estimate()),
    ],
)  # fmt: skip
def test_a_task_is_expected_to_need_what_its_like_needed(past: list[PastTask], expected: Estimate) -> None:
    assert estimate(past, SHOP, "backend") == expected
