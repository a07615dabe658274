"""How an attempt at a turn ends: run, too late, poison, given back, or left to another worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from shared.errors import (
    BusUnreachable,
    Busy,
    ConfigurationError,
    Conflict,
    Fenced,
    Lasting,
    ModelError,
    PromptDockError,
    StoreUnavailable,
    TimedOut,
    UsageError,
)
from shared.turns.queue import Claim, Completion, Mail
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.pool import DEATHS, FAILURES, Pool
from tests.support.valkey import until
from tests.worker.ground import connected


class Runner:
    """Does in its turn what it is told to, and notes how that was ended."""

    def __init__(self, turn: Turn, work: Callable[[], object], deadline: int = 0) -> None:
        self.turn, self.work, self.deadline = turn, work, deadline
        self.came: list[str] = []

    async def run(self) -> None:
        self.came.append("ran")
        self.work()
        await self.turn.finish(Completion())

    async def stopped(self) -> None:
        self.came.append("stopped")
        await self.turn.finish(Completion())

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        self.came.append(f"failed: {error.what} {dead}".strip())
        await self.turn.finish(Completion(dead=dead))


class Ground:
    """A pool, and the runner that it made."""

    def __init__(self, work: Callable[[], object] = lambda: None, deadline: int = 0) -> None:
        self.connection: Connection = connected()
        self.queue = self.connection.queue("backend")
        self.runners: list[Runner] = []
        self.work, self.deadline, self.room = work, deadline, 0
        self.pool = Pool(self.queue, self._make, self._ended, 8)

    def _make(self, turn: Turn) -> Runner:
        self.runners.append(Runner(turn, self.work, self.deadline))
        return self.runners[-1]

    def _ended(self) -> None:
        self.room += 1

    async def claim(self) -> Claim:
        await self.queue.post(Mail("q1", "s", self.connection.names.agent("backend"), b"{}"))
        claim = await self.queue.claim("w1")
        assert isinstance(claim, Claim)
        return claim

    async def carry(self, **changes: Any) -> list[str]:
        """Carry a turn out, delivered or failed so often before; how its runner ended it."""
        self.pool.take(replace(await self.claim(), **changes))
        await until(lambda: not len(self.pool), 5)
        assert self.room == 1, "there is room again"
        return self.runners[0].came if self.runners else []


def raising(error: Exception) -> Callable[[], object]:
    def work() -> None:
        raise error

    return work


async def test_a_turn_runs_to_its_end_and_makes_room() -> None:
    ground = Ground()
    assert await ground.carry() == ["ran"]
    assert await ground.queue.state("q1") == "done"


@pytest.mark.parametrize(
    ("changes", "why"), [({"tries": DEATHS + 1}, "poison"), ({"fails": FAILURES}, "poison")]
)
async def test_a_message_that_killed_or_failed_too_often_is_buried_without_another_try(
    changes: dict[str, int], why: str
) -> None:
    assert await Ground().carry(**changes) == [f"failed: The message could not be answered {why}"]


@pytest.mark.parametrize("changes", [{"tries": DEATHS}, {"fails": FAILURES - 1}])
async def test_the_last_try_is_made(changes: dict[str, int]) -> None:
    assert await Ground().carry(**changes) == ["ran"]


async def test_a_message_whose_deadline_passed_while_it_waited_is_not_begun() -> None:
    assert await Ground(deadline=1).carry() == ["failed: The message is too old to be answered expired"]


@pytest.mark.parametrize("kind", [ModelError, UsageError, ConfigurationError, Lasting, PromptDockError])
async def test_an_error_that_says_what_to_do_ends_the_turn_with_its_words(
    kind: type[PromptDockError],
) -> None:
    ground = Ground(raising(kind("no key", "it is not set")))
    assert await ground.carry() == ["ran", "failed: no key"]


@pytest.mark.parametrize("kind", [StoreUnavailable, Busy, Conflict, TimedOut])
async def test_an_error_that_passes_gives_the_turn_back_for_another_try(kind: type[PromptDockError]) -> None:
    ground = Ground(raising(kind("not now")))
    assert await ground.carry() == ["ran"]
    assert await ground.queue.state("q1") == "accepted"


async def test_an_error_that_nobody_foresaw_gives_the_turn_back_for_another_try() -> None:
    ground = Ground(raising(ValueError("broken")))
    assert await ground.carry() == ["ran"]
    assert await ground.queue.state("q1") == "accepted"


async def test_the_fifth_failure_in_a_row_buries_the_message() -> None:
    ground = Ground(raising(ValueError("broken")))
    assert await ground.carry(fails=FAILURES - 1) == [
        "ran",
        "failed: The message could not be answered poison",
    ]
    assert await ground.queue.state("q1") == "done"


@pytest.mark.parametrize("error", [Fenced("lost"), BusUnreachable("away")])
async def test_a_turn_that_is_not_ours_any_more_is_left_as_it_is(error: Exception) -> None:
    ground = Ground(raising(error))
    assert await ground.carry() == ["ran"]
    assert await ground.queue.state("q1") == "accepted"


@pytest.mark.parametrize(
    ("draining", "came", "state"), [(False, ["stopped"], "done"), (True, [], "accepted")]
)
async def test_a_turn_that_the_person_stops_says_so_and_one_that_is_drained_goes_back(
    draining: bool, came: list[str], state: str
) -> None:
    ground, began = Ground(), asyncio.Event()
    ground.pool._make = lambda turn: _waiting(ground, turn, began)
    ground.pool.take(await ground.claim())
    await until(began.is_set, 5)
    ground.pool.draining = draining
    ground.pool.stop("s")
    await until(lambda: not len(ground.pool), 5)
    assert ground.runners[0].came == came
    assert await ground.queue.state("q1") == state


class _Waiting(Runner):
    """Waits for what never comes."""

    async def run(self) -> None:
        self.work()
        await asyncio.Event().wait()


def _waiting(ground: Ground, turn: Turn, waits: asyncio.Event) -> Runner:
    ground.runners.append(_Waiting(turn, waits.set))
    return ground.runners[-1]


async def test_a_lease_that_another_took_ends_the_turn_without_a_word() -> None:
    ground = Ground()
    began = asyncio.Event()
    ground.pool._make = lambda turn: _waiting(ground, turn, began)
    ground.pool.take(await ground.claim())
    await until(began.is_set, 5)
    await ground.queue.release("s", 1)
    await ground.queue.claim("w2")
    await ground.pool.renew()
    await until(lambda: not len(ground.pool), 5)
    assert ground.runners[0].came == [] and ground.runners[0].turn.lost.is_set()


async def test_a_message_of_which_nobody_can_make_a_runner_is_buried_and_the_worker_goes_on() -> None:
    ground = Ground()
    ground.pool._make = raising(KeyError("type"))  # type: ignore[assignment]
    assert await ground.carry() == []
    assert await ground.queue.state("q1") == "done"
