"""What launches and what does not: rest, flight, daily cap, depth, one run for one moment."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.hooks import launch
from shared.store.records import Hook, HookRun
from shared.store.sqlite import SqliteStore
from tests.hooks.conftest import Make

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


async def fresh(store: SqliteStore, hook: Hook) -> Hook:
    return (await store.select(Hook, {"id": hook.id}))[0]


async def go(store: SqliteStore, hook: Hook, key: str, at: datetime = NOON, **more: Any) -> HookRun | str:
    return await launch.launch(store, await fresh(store, hook), key, "periodic", at, **more)


async def test_one_moment_makes_one_run_however_many_ask(store: SqliteStore, make: Make) -> None:
    hook = await make()
    asked = await asyncio.gather(*(go(store, hook, "periodic:12:00") for _ in range(8)))
    assert sum(isinstance(run, HookRun) for run in asked) == 1
    assert await store.count(HookRun) == 1
    assert (await fresh(store, hook)).launched_at == NOON


async def test_a_launch_that_was_not_noted_at_its_hook_is_noted_by_the_next_look(
    store: SqliteStore, make: Make
) -> None:
    hook = await make()
    await go(store, hook, "periodic:12:00")
    await store.update(Hook, {"launched_at": None}, {"id": hook.id})
    assert await go(store, hook, "periodic:12:00") == "it was launched for this already"
    assert (await fresh(store, hook)).launched_at == NOON


async def test_a_hook_rests_from_its_launch_and_a_person_may_wake_it(store: SqliteStore, make: Make) -> None:
    hook = await make(cooldown_seconds=3600)
    run = await go(store, hook, "a")
    assert isinstance(run, HookRun)
    await launch.end(store, run, "completed", NOON)
    assert "rests" in str(await go(store, hook, "b", NOON + timedelta(seconds=3599)))
    assert isinstance(await go(store, hook, "c", NOON + timedelta(seconds=10), by_hand=True), HookRun)


async def test_a_hook_in_flight_is_not_launched_again_not_even_by_hand(
    store: SqliteStore, make: Make
) -> None:
    hook = await make()
    assert isinstance(await go(store, hook, "a"), HookRun)
    assert await go(store, hook, "b", by_hand=True) == "it is running already"


async def test_a_hook_that_is_switched_off_is_not_launched(store: SqliteStore, make: Make) -> None:
    assert await go(store, await make(enabled=False), "a") == "it is switched off"


async def test_a_hook_runs_no_more_often_in_a_day_than_it_may(store: SqliteStore, make: Make) -> None:
    hook = await make(daily_cap=2)
    for n in range(4):
        run = await go(store, hook, f"event:{n}")
        if isinstance(run, HookRun):
            await launch.end(store, run, "completed", NOON)
    assert await store.count(HookRun) == 2
    assert await go(store, hook, "event:9") == "it ran 2 times today"


async def test_a_chain_of_hooks_ends_at_its_depth(store: SqliteStore, make: Make) -> None:
    hook = await make(daily_cap=1000)
    depths, session = [], ""
    for n in range(6):
        depth = await launch.depth_in(store, session)
        run = await go(store, hook, f"event:{n}", depth=depth)
        if isinstance(run, str):
            assert "set each other off" in run
            break
        depths.append(run.depth)
        session = f"{launch.SESSION}{run.id}.1.2"  # a consult that the run's agent made
        await launch.end(store, run, "completed", NOON)
    assert depths == [0, 1, 2, 3]


async def test_a_waiting_run_is_begun_once(store: SqliteStore, make: Make) -> None:
    run = await go(store, await make(), "a")
    assert isinstance(run, HookRun) and launch.waits(run)
    begun = await asyncio.gather(*(launch.begin(store, run, f"hook:{n}") for n in range(8)))
    (ours,) = [one for one in begun if one]
    assert not launch.waits(ours)
    assert await launch.end(store, ours, "completed", NOON)
    assert not await launch.end(store, ours, "failed", NOON)
