"""Who is idle is given the next message with the script that accepts it, and may do with it what a claim allows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from shared.bus.base import Bus
from shared.bus.keys import HUMAN_INPUT, Names
from shared.bus.redis import RedisBus
from shared.errors import Fenced
from shared.turns.handoff import Handoff
from shared.turns.intake import Intake
from shared.turns.queue import Claim, Queue
from shared.turns.records import pack
from shared.turns.turn import Turn
from tests.support.valkey import eventually, until
from tests.turns.ground import claimed, closing, given, lapse, mail, state


@dataclass
class IdleWorker:
    """A worker that listens for handoffs."""

    queue: Queue
    name: str = "w1"
    idle: bool = True
    came: list[Claim] = field(default_factory=list)
    notices: list[tuple[str, dict[str, Any] | None]] = field(default_factory=list)

    async def start(self) -> IdleWorker:
        self.handoff = Handoff(self.queue, self.name, lambda: self.idle, self.came.append)
        channel = self.queue.names.channel(HUMAN_INPUT)
        intake = Intake(
            self.queue, [channel], lambda *notice: self.notices.append(notice), [channel], self.handoff
        )
        self.listening = asyncio.create_task(intake.run())
        await asyncio.wait_for(intake.ready.wait(), 5)
        return self

    async def stop(self) -> None:
        self.listening.cancel()
        await asyncio.gather(self.listening, return_exceptions=True)

    async def answer(self, claim: Claim) -> None:
        await self.queue.finish(claim.session, claim.epoch, closing(f"to {given(claim)[0]}"))

    async def next(self) -> Claim:
        """What was given beyond what had been given when this was called last."""
        await until(lambda: bool(self.came))
        return self.came.pop(0)


@pytest.fixture
async def bus(valkey: str) -> AsyncIterator[Bus]:
    """Only the real one: whether somebody listens is what connections tell."""
    made = RedisBus(valkey, silence=5.0)
    yield made
    await made.close()


@pytest.fixture
async def worker(queue: Queue) -> AsyncIterator[IdleWorker]:
    """A worker that has just ended a turn and holds no other."""
    made = await IdleWorker(queue).start()
    await queue.post(mail("m0"))
    await made.answer(await claimed(queue))
    yield made
    await made.stop()


async def _none(worker: IdleWorker) -> None:
    """Nothing was given: a message that the same connection hears later has come, and no turn before it."""
    heard = len(worker.notices)
    await worker.queue.bus.publish(worker.queue.wake_up, b'{"marker": 1}')
    await until(lambda: any(content == {"marker": 1} for _, content in worker.notices[heard:]))
    assert not worker.came


async def test_an_idle_worker_is_given_the_next_message_without_a_claim(worker: IdleWorker) -> None:
    queue = worker.queue
    await queue.post(mail("m1", deadline=0))
    claim = await worker.next()
    assert (claim.session, given(claim), claim.tries, claim.fails) == ("s", ["m1"], 1, 0)
    assert (claim.journal, claim.window, claim.seq, claim.untold) == ([], [], None, [])
    assert (claim.entries[0].data, claim.entries[0].deadline) == (mail("m1").data, 0)
    wait = await queue.claim("w2")
    assert isinstance(wait, int)
    assert 0 < wait <= 60_000  # it has a lease like any other
    await worker.answer(claim)
    assert (await state(queue)).said == ["to m0", "to m1"]
    assert (await state(queue)).inbox == []


async def test_what_is_given_is_told_before_the_message_itself_and_named_so_that_nobody_looks_for_it(
    worker: IdleWorker,
) -> None:
    data = b'{"user_id": "ann", "content": "hi", "id": "m1", "via": "human-input"}'
    channel = worker.queue.names.channel(HUMAN_INPUT)
    data = data.replace(b"human-input", channel.encode())
    worker.notices.clear()
    await worker.queue.post(mail("m1", data=data, channel=channel))
    await until(lambda: bool(worker.notices))
    assert [given(claim) for claim in worker.came] == [["m1"]]
    assert [content["id"] for _, content in worker.notices if content] == [worker.handoff.last_id] == ["m1"]


async def test_every_end_of_a_last_turn_is_good_for_one_message(worker: IdleWorker) -> None:
    for name in ("a", "b", "c"):
        await worker.queue.post(mail(name, name))
    first = await worker.next()
    assert first.session == "a"
    await _none(worker)
    waiting = [await claimed(worker.queue, "w2"), await claimed(worker.queue, "w2")]
    assert [claim.session for claim in waiting] == ["b", "c"]
    assert len({first.epoch, *(claim.epoch for claim in waiting)}) == 3
    await worker.answer(first)
    await worker.queue.post(mail("d", "d"))
    assert (await worker.next()).session == "d"


async def test_who_holds_other_turns_is_given_nothing(worker: IdleWorker) -> None:
    await worker.queue.post(mail("m1"))
    worker.idle = False
    await worker.answer(await worker.next())
    await worker.queue.post(mail("m2"))
    await _none(worker)
    assert given(await claimed(worker.queue)) == ["m2"]


async def test_who_does_not_listen_any_more_is_given_nothing(worker: IdleWorker) -> None:
    await worker.stop()

    async def gone() -> bool:
        return not await worker.queue.bus.listeners(worker.handoff.channel)

    await eventually(gone, 5)
    await worker.queue.post(mail("m1"))
    assert given(await claimed(worker.queue, "w2")) == ["m1"]
    assert not worker.came


async def test_who_left_the_seat_is_given_nothing(worker: IdleWorker) -> None:
    await worker.handoff.close()
    await worker.queue.post(mail("m1"))
    await _none(worker)
    await worker.answer(await claimed(worker.queue))
    await worker.queue.post(mail("m2"))
    await _none(worker)


async def test_who_has_been_idle_for_longer_than_a_lease_may_be_frozen_and_is_given_nothing(
    worker: IdleWorker,
) -> None:
    key = f"{worker.queue.prefix}idle"
    (offer,) = await worker.queue.bus.command("ZRANGE", key, 0, -1)
    await worker.queue.bus.command("ZADD", key, 1, offer)
    await worker.queue.post(mail("m1"))
    await _none(worker)
    assert given(await claimed(worker.queue, "w2")) == ["m1"]


async def test_the_idle_of_whom_nothing_is_heard_any_more_are_forgotten_when_somebody_joins(
    worker: IdleWorker,
) -> None:
    key = f"{worker.queue.prefix}idle"
    await worker.queue.bus.command("ZADD", key, 1, f"60000 dead {worker.queue.prefix}seat:dead")
    await worker.queue.join()
    (left,) = await worker.queue.bus.command("ZRANGE", key, 0, -1)
    assert left.endswith(worker.handoff.channel.encode())


async def test_what_waits_longer_comes_first(worker: IdleWorker) -> None:
    queue = worker.queue
    await queue.bus.command("ZADD", f"{queue.prefix}due", 1, "before")
    await queue.bus.command("RPUSH", f"{queue.prefix}mail:before", "1-1")
    await queue.post(mail("m1"))
    await _none(worker)
    assert (await claimed(queue, "w2")).session == "before"


async def test_a_message_for_a_session_that_runs_or_waits_is_not_given(worker: IdleWorker) -> None:
    queue = worker.queue
    await queue.post(mail("m1"))
    claim = await worker.next()
    other = await IdleWorker(Queue(queue.bus, queue.names, "chatter", lease_ms=60_000), "w2").start()
    try:
        await queue.post(mail("n", "t"))
        await other.answer(await claimed(other.queue, "w2"))
        await queue.post(mail("m2"))
        await _none(other)
        await queue.release("s", claim.epoch, 50_000)
        await queue.post(mail("m3"))
        await _none(other)
    finally:
        await other.stop()


async def test_whoever_lost_what_was_given_can_commit_nothing(worker: IdleWorker) -> None:
    await worker.queue.post(mail("m1"))
    claim = await worker.next()
    await lapse(worker.queue)
    heir = await claimed(worker.queue, "w2")
    assert (given(heir), heir.tries) == (["m1"], 2)
    with pytest.raises(Fenced):
        await worker.answer(claim)
    await worker.queue.finish("s", heir.epoch, closing("answer"))
    assert (await state(worker.queue)).said == ["to m0", "answer"]


async def test_a_message_that_is_posted_again_is_given_once(worker: IdleWorker) -> None:
    await worker.queue.post(mail("m1"))
    await worker.answer(await worker.next())
    assert (await worker.queue.post(mail("m1"))).outcome == "known"
    await _none(worker)


async def test_what_came_by_plain_publish_is_given_too(worker: IdleWorker) -> None:
    await worker.queue.bus.publish(
        worker.queue.names.channel(HUMAN_INPUT), b'{"user_id": "ann", "content": "hi", "id": "plain"}'
    )
    claim = await worker.next()
    assert given(claim) == ["plain"]
    await worker.answer(claim)


async def test_what_is_given_brings_the_conversation_whatever_bytes_it_has(worker: IdleWorker) -> None:
    queue = worker.queue
    record = pack({"text": "\r\n$5\r\n" * 9000})
    odd = b'{"user_id": "ann", "content": "\r\n:1\r\n", "id": "m1", "x": "\xff\x00"}'
    await queue.post(mail("m1"))
    claim = await worker.next()
    ending = closing("unseen", keep="always", window=[record, b"\xff\x00"], seq=7)
    await queue.finish("s", claim.epoch, ending)
    await queue.post(mail("m2", data=odd))
    claim = await worker.next()
    assert (claim.window, claim.seq, claim.entries[0].data) == ([record, b"\xff\x00"], 7, odd)
    assert [text for _, text in claim.untold] == [b"unseen"]


async def test_a_lease_counts_from_the_moment_of_the_gift_and_not_from_when_it_was_read(
    worker: IdleWorker,
) -> None:
    queue, told = worker.queue, list[bytes]()
    worker.handoff.on_message = told.append  # type: ignore[assignment, method-assign]
    before = time.monotonic()
    await queue.post(mail("m1"))
    after = time.monotonic()
    await until(lambda: bool(told))
    claim = queue.handed_over(told[0])  # read after `after`
    assert claim is not None
    # Rather too early than too late: the server's clock is known from a claim whose way took a moment.
    assert before - 10 < claim.requested <= after
    assert Turn(queue, claim).renewed == claim.requested


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"x",
        b"*2\r\n:1\r\n",
        b":1\r\n",
        b"*2\r\n:1\r\n*0\r\n",
        b"*2\r\n$1\r\nx\r\n*0\r\n",
        b"\xff\x00" * 9,
    ],
)
async def test_what_no_script_told_is_left_alone(worker: IdleWorker, junk: bytes) -> None:
    await worker.queue.bus.publish(worker.handoff.channel, junk)
    await _none(worker)
    assert not worker.listening.done()
    await worker.queue.post(mail("m1"))
    assert given(await worker.next()) == ["m1"]


async def test_two_queues_give_only_their_own(bus: Bus, worker: IdleWorker, names: Names) -> None:
    await Queue(bus, names, "planner", lease_ms=60_000).post(mail("m1"))
    await _none(worker)
    await worker.queue.post(mail("m2"))
    assert given(await worker.next()) == ["m2"]
