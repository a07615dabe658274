"""The turns of a worker's pool, on a real queue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.turns.queue import Claim, Completion, Queue
from shared.turns.records import AskRecord
from shared.turns.turn import Turn
from shared.worker.pool import Pool
from tests.support.valkey import eventually, names, until, valkey
from tests.turns.ground import claimed, lapse, mail

__all__ = ["names", "valkey"]


class _Closing(RedisBus):
    """A bus on which the reply to the end of a turn comes late."""

    def __init__(self, url: str) -> None:
        super().__init__(url, silence=5.0)
        self.ended, self.reply = asyncio.Event(), asyncio.Event()

    async def script(self, script: Any, key: str, *arguments: Any) -> Any:
        told = await super().script(script, key, *arguments)
        if script.name == "finish" and not self.ended.is_set():
            self.ended.set()
            await self.reply.wait()
        return told


class _Runner:
    """Ends its turn, and says afterwards that it came so far."""

    deadline = 0

    def __init__(self, turn: Turn, came: list[str]) -> None:
        self.turn, self.came = turn, came

    async def run(self) -> None:
        await self.turn.finish(Completion())
        await asyncio.sleep(0)
        self.came.append(self.turn.id)

    async def stopped(self) -> None: ...
    async def failed(self, error: Exception, dead: str = "") -> None: ...


async def test_a_turn_comes_to_its_end_though_the_next_of_its_session_was_claimed_already(
    valkey: str, names: Names
) -> None:
    """The claim may be read before the reply to the end: nothing of what follows the end is cut off."""
    bus = _Closing(valkey)
    queue, came = Queue(bus, names, "chatter", lease_ms=60_000), list[str]()
    pool = Pool(queue, lambda turn: _Runner(turn, came), lambda: None, 8)
    try:
        for identity in ("m1", "m2"):
            await queue.post(mail(identity))
        async with asyncio.timeout(10):
            pool.take(await claimed(queue))
            first = next(iter(pool)).task
            await bus.ended.wait()
            pool.take(await claimed(queue))
            second = next(iter(pool)).task
            bus.reply.set()
            await asyncio.gather(first, second)
        assert sorted(came) == ["m1", "m2"]
        assert not len(pool)
    finally:
        await bus.close()


class _Waiting(_Runner):
    """Holds its turn until it is let go."""

    async def run(self) -> None:
        await asyncio.Event().wait()


async def _suspect(queue: Queue) -> Claim:
    """A message with which two workers died."""
    await queue.post(mail("bad", "bad"))
    for _ in range(2):
        await claimed(queue)
        await lapse(queue, "bad")
    return await claimed(queue)


@pytest.mark.parametrize("busy", ["draining", "suspects"])
async def test_what_is_given_to_whoever_may_take_nothing_more_goes_back_at_once(
    valkey: str, names: Names, busy: str
) -> None:
    bus = RedisBus(valkey, silence=5.0)
    queue = Queue(bus, names, "chatter", lease_ms=60_000)
    pool = Pool(queue, lambda turn: _Waiting(turn, []), lambda: None, 8)
    try:
        pool.draining = busy == "draining"
        if busy == "suspects":
            pool.given(await _suspect(queue))
        assert pool.suspects is (busy == "suspects")
        await queue.post(mail("m1"))
        pool.given(await claimed(queue))
        assert pool.of("s") is None

        async def back() -> bool:
            return isinstance(claim := await queue.claim("w2"), Claim) and claim.tries == 1

        await eventually(back, 5)
        pool.drop()
        pool.draining = False
        await until(lambda: not len(pool))
        await queue.post(mail("m2", "t"))
        pool.given(await claimed(queue))
        assert pool.of("t") is not None
        pool.drop()
        await until(lambda: not len(pool))
    finally:
        await bus.close()


async def test_a_worker_is_idle_when_its_only_turn_ends_and_another_may_begin_beside_it(
    valkey: str, names: Names
) -> None:
    bus = RedisBus(valkey, silence=5.0)
    queue = Queue(bus, names, "chatter", lease_ms=60_000)
    one, two = (Pool(queue, lambda turn: _Waiting(turn, []), lambda: None, turns) for turns in (1, 2))
    try:
        for number, (pool, told) in enumerate([(one, False), (two, True), (two, False)]):
            await queue.post(mail(f"m{number}", f"s{number}"))
            pool.take(await claimed(queue))
            assert pool.idle is told
        assert (one.room, two.room) == (0, 0)
        two.drop()
        await until(lambda: not len(two))
        assert two.room == 2
        two.draining = True
        await queue.post(mail("last", "last"))
        two.take(await claimed(queue))
        assert not two.idle
        for pool in (one, two):
            pool.drop()
        await until(lambda: not len(one) and not len(two))
    finally:
        await bus.close()


class _Late(_Runner):
    """Runs for ever, and says how it was ended."""

    def __init__(self, turn: Turn, came: list[str], limit: int) -> None:
        super().__init__(turn, came)
        self.limit = limit

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def failed(self, error: Exception, dead: str = "") -> None:
        self.came.append(str(error))
        await self.turn.finish(Completion())


async def test_a_deadline_ends_what_runs_but_not_while_a_person_is_asked(valkey: str, names: Names) -> None:
    bus, came = RedisBus(valkey, silence=5.0), list[str]()
    queue = Queue(bus, names, "chatter", lease_ms=60_000)
    pool = Pool(queue, lambda turn: _Late(turn, came, turn.claimed_at + 300), lambda: None, 8)
    try:
        await queue.post(mail("asks", "asks"))
        await queue.post(mail("late", "late"))
        for _ in range(2):
            claim = await claimed(queue)
            pool.take(claim)
            if claim.session == "asks":
                turn = pool.of("asks")
                assert turn is not None
                card = {"id": "c", "call": "k"}
                turn.turn.keep(AskRecord(at=claim.now, call="k", card=card))
        await until(lambda: len(pool) == 1)
        assert len(came) == 1 and "ended at its deadline" in came[0]
        assert pool.of("asks") is not None
        pool.drop()
        await until(lambda: not len(pool))
    finally:
        await bus.close()
