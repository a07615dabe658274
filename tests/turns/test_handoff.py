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
class Sitter:
    """A worker that listens on its seat."""

    queue: Queue
    name: str = "w1"
    idle: bool = True
    came: list[Claim] = field(default_factory=list)
    bells: list[tuple[str, dict[str, Any] | None]] = field(default_factory=list)

    async def start(self) -> Sitter:
        self.seat = Handoff(self.queue, self.name, lambda: self.idle, self.came.append)
        channel = self.queue.names.channel(HUMAN_INPUT)
        ear = Intake(self.queue, [channel], lambda *bell: self.bells.append(bell), [channel], self.seat)
        self.listening = asyncio.create_task(ear.run())
        await asyncio.wait_for(ear.ready.wait(), 5)
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
async def sitter(queue: Queue) -> AsyncIterator[Sitter]:
    """A worker that has just ended a turn and holds no other."""
    made = await Sitter(queue).start()
    await queue.post(mail("m0"))
    await made.answer(await claimed(queue))
    yield made
    await made.stop()


async def _none(sitter: Sitter) -> None:
    """Nothing was given: a message that the same connection hears later has come, and no turn before it."""
    heard = len(sitter.bells)
    await sitter.queue.bus.publish(sitter.queue.bell, b'{"marker": 1}')
    await until(lambda: any(content == {"marker": 1} for _, content in sitter.bells[heard:]))
    assert not sitter.came


async def test_an_idle_worker_is_given_the_next_message_without_a_claim(sitter: Sitter) -> None:
    queue = sitter.queue
    await queue.post(mail("m1", deadline=0))
    claim = await sitter.next()
    assert (claim.session, given(claim), claim.tries, claim.fails) == ("s", ["m1"], 1, 0)
    assert (claim.journal, claim.window, claim.seq, claim.untold) == ([], [], None, [])
    assert (claim.entries[0].data, claim.entries[0].deadline) == (mail("m1").data, 0)
    wait = await queue.claim("w2")
    assert isinstance(wait, int)
    assert 0 < wait <= 60_000  # it has a lease like any other
    await sitter.answer(claim)
    assert (await state(queue)).said == ["to m0", "to m1"]
    assert (await state(queue)).inbox == []


async def test_what_is_given_is_told_before_the_message_itself_and_named_so_that_nobody_looks_for_it(
    sitter: Sitter,
) -> None:
    data = b'{"user_id": "ann", "content": "hi", "id": "m1", "via": "human-input"}'
    channel = sitter.queue.names.channel(HUMAN_INPUT)
    data = data.replace(b"human-input", channel.encode())
    sitter.bells.clear()
    await sitter.queue.post(mail("m1", data=data, channel=channel))
    await until(lambda: bool(sitter.bells))
    assert [given(claim) for claim in sitter.came] == [["m1"]]
    assert [content["id"] for _, content in sitter.bells if content] == [sitter.seat.given] == ["m1"]


async def test_every_end_of_a_last_turn_is_good_for_one_message(sitter: Sitter) -> None:
    for name in ("a", "b", "c"):
        await sitter.queue.post(mail(name, name))
    first = await sitter.next()
    assert first.session == "a"
    await _none(sitter)
    waiting = [await claimed(sitter.queue, "w2"), await claimed(sitter.queue, "w2")]
    assert [claim.session for claim in waiting] == ["b", "c"]
    assert len({first.epoch, *(claim.epoch for claim in waiting)}) == 3
    await sitter.answer(first)
    await sitter.queue.post(mail("d", "d"))
    assert (await sitter.next()).session == "d"


async def test_who_holds_other_turns_is_given_nothing(sitter: Sitter) -> None:
    await sitter.queue.post(mail("m1"))
    sitter.idle = False
    await sitter.answer(await sitter.next())
    await sitter.queue.post(mail("m2"))
    await _none(sitter)
    assert given(await claimed(sitter.queue)) == ["m2"]


async def test_who_does_not_listen_any_more_is_given_nothing(sitter: Sitter) -> None:
    await sitter.stop()

    async def gone() -> bool:
        return not await sitter.queue.bus.listeners(sitter.seat.channel)

    await eventually(gone, 5)
    await sitter.queue.post(mail("m1"))
    assert given(await claimed(sitter.queue, "w2")) == ["m1"]
    assert not sitter.came


async def test_who_left_the_seat_is_given_nothing(sitter: Sitter) -> None:
    await sitter.seat.leave()
    await sitter.queue.post(mail("m1"))
    await _none(sitter)
    await sitter.answer(await claimed(sitter.queue))
    await sitter.queue.post(mail("m2"))
    await _none(sitter)


async def test_who_has_been_idle_for_longer_than_a_lease_may_be_frozen_and_is_given_nothing(
    sitter: Sitter,
) -> None:
    key = f"{sitter.queue.prefix}idle"
    (seat,) = await sitter.queue.bus.command("ZRANGE", key, 0, -1)
    await sitter.queue.bus.command("ZADD", key, 1, seat)
    await sitter.queue.post(mail("m1"))
    await _none(sitter)
    assert given(await claimed(sitter.queue, "w2")) == ["m1"]


async def test_the_idle_of_whom_nothing_is_heard_any_more_are_forgotten_when_somebody_joins(
    sitter: Sitter,
) -> None:
    key = f"{sitter.queue.prefix}idle"
    await sitter.queue.bus.command("ZADD", key, 1, f"60000 dead {sitter.queue.prefix}seat:dead")
    await sitter.queue.join()
    (left,) = await sitter.queue.bus.command("ZRANGE", key, 0, -1)
    assert left.endswith(sitter.seat.channel.encode())


async def test_what_waits_longer_comes_first(sitter: Sitter) -> None:
    queue = sitter.queue
    await queue.bus.command("ZADD", f"{queue.prefix}due", 1, "before")
    await queue.bus.command("RPUSH", f"{queue.prefix}mail:before", "1-1")
    await queue.post(mail("m1"))
    await _none(sitter)
    assert (await claimed(queue, "w2")).session == "before"


async def test_a_message_for_a_session_that_runs_or_waits_is_not_given(sitter: Sitter) -> None:
    queue = sitter.queue
    await queue.post(mail("m1"))
    claim = await sitter.next()
    other = await Sitter(Queue(queue.bus, queue.names, "chatter", lease_ms=60_000), "w2").start()
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


async def test_whoever_lost_what_was_given_can_commit_nothing(sitter: Sitter) -> None:
    await sitter.queue.post(mail("m1"))
    claim = await sitter.next()
    await lapse(sitter.queue)
    heir = await claimed(sitter.queue, "w2")
    assert (given(heir), heir.tries) == (["m1"], 2)
    with pytest.raises(Fenced):
        await sitter.answer(claim)
    await sitter.queue.finish("s", heir.epoch, closing("answer"))
    assert (await state(sitter.queue)).said == ["to m0", "answer"]


async def test_a_message_that_is_posted_again_is_given_once(sitter: Sitter) -> None:
    await sitter.queue.post(mail("m1"))
    await sitter.answer(await sitter.next())
    assert (await sitter.queue.post(mail("m1"))).outcome == "known"
    await _none(sitter)


async def test_what_came_by_plain_publish_is_given_too(sitter: Sitter) -> None:
    await sitter.queue.bus.publish(
        sitter.queue.names.channel(HUMAN_INPUT), b'{"user_id": "ann", "content": "hi", "id": "plain"}'
    )
    claim = await sitter.next()
    assert given(claim) == ["plain"]
    await sitter.answer(claim)


async def test_what_is_given_brings_the_conversation_whatever_bytes_it_has(sitter: Sitter) -> None:
    queue = sitter.queue
    record = pack({"text": "\r\n$5\r\n" * 9000})
    odd = b'{"user_id": "ann", "content": "\r\n:1\r\n", "id": "m1", "x": "\xff\x00"}'
    await queue.post(mail("m1"))
    claim = await sitter.next()
    ending = closing("unseen", keep="always", window=[record, b"\xff\x00"], seq=7)
    await queue.finish("s", claim.epoch, ending)
    await queue.post(mail("m2", data=odd))
    claim = await sitter.next()
    assert (claim.window, claim.seq, claim.entries[0].data) == ([record, b"\xff\x00"], 7, odd)
    assert [text for _, text in claim.untold] == [b"unseen"]


async def test_a_lease_counts_from_the_moment_of_the_gift_and_not_from_when_it_was_read(
    sitter: Sitter,
) -> None:
    queue, told = sitter.queue, list[bytes]()
    sitter.seat.heard = told.append  # type: ignore[assignment, method-assign]
    before = time.monotonic()
    await queue.post(mail("m1"))
    after = time.monotonic()
    await until(lambda: bool(told))
    claim = queue.given(told[0])  # read after `after`
    assert claim is not None
    # Rather too early than too late: the server's clock is known from a claim whose way took a moment.
    assert before - 10 < claim.asked <= after
    assert Turn(queue, claim).renewed == claim.asked


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
async def test_what_no_script_told_is_left_alone(sitter: Sitter, junk: bytes) -> None:
    await sitter.queue.bus.publish(sitter.seat.channel, junk)
    await _none(sitter)
    assert not sitter.listening.done()
    await sitter.queue.post(mail("m1"))
    assert given(await sitter.next()) == ["m1"]


async def test_two_queues_give_only_their_own(bus: Bus, sitter: Sitter, names: Names) -> None:
    await Queue(bus, names, "planner", lease_ms=60_000).post(mail("m1"))
    await _none(sitter)
    await sitter.queue.post(mail("m2"))
    assert given(await sitter.next()) == ["m2"]
