"""A turn in the hands of its worker: whether it is still ours, and what a new claim of our own makes of it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from shared.errors import BusUnreachable, Fenced
from shared.turns.queue import Queue
from shared.turns.records import NoteRecord
from shared.turns.turn import Turn
from tests.turns.ground import claimed, closing, lapse, losses, mail, state

LATE = 61.0  # seconds; the lease of `queue` is a minute


async def mine(queue: Queue) -> Turn:
    """A turn that was just claimed."""
    await queue.post(mail("m1"))
    return Turn(queue, await claimed(queue))


async def test_nobody_is_asked_whether_a_fresh_lease_is_ours(lossy: Queue) -> None:
    turn = await mine(lossy)
    before = list(losses(lossy).ran)
    await turn.ours()
    await turn.look()
    assert losses(lossy).ran == before


async def test_whoever_slept_beyond_the_lease_asks_and_goes_on_where_nobody_took_it(lossy: Queue) -> None:
    turn = await mine(lossy)
    turn.renewed -= LATE
    await turn.ours()
    assert losses(lossy).ran[-1] == "step"
    assert time.monotonic() - turn.renewed < LATE / 2


async def test_whoever_slept_beyond_the_lease_learns_that_another_has_the_turn(queue: Queue) -> None:
    turn = await mine(queue)
    await lapse(queue)
    await claimed(queue, "w2")
    turn.renewed -= LATE
    with pytest.raises(Fenced):
        await turn.ours()
    with pytest.raises(Fenced):
        await turn.ours()  # and it is known from then on


async def test_a_lease_counts_from_the_question_not_from_the_reply(queue: Queue) -> None:
    """Who is frozen between the two reads a reply that says nothing about now."""
    await queue.post(mail("m1"))
    before = time.monotonic()
    claim = await claimed(queue)
    assert before <= claim.requested <= time.monotonic()
    late = Turn(queue, replace(claim, requested=before - LATE))
    await lapse(queue)
    await claimed(queue, "w2")
    with pytest.raises(Fenced):
        await late.ours()


async def test_a_claim_whose_reply_was_lost_counts_from_its_first_try(lossy: Queue) -> None:
    await lossy.post(mail("m1"))
    losses(lossy).lose = ["claim"]
    with pytest.raises(BusUnreachable, match="reply was lost"):
        await lossy.claim("w1")
    between = time.monotonic()
    claim = await claimed(lossy)
    assert claim.requested < between


async def test_a_turn_that_nobody_else_had_goes_on_under_a_new_claim_of_ours(queue: Queue) -> None:
    turn = await mine(queue)
    await turn.step(NoteRecord(text="one"))
    await lapse(queue)
    claim = await claimed(queue)
    assert turn.regain(claim)
    assert (turn.epoch, turn.tries, turn.renewed) == (claim.epoch, claim.tries, claim.requested)
    await turn.step(NoteRecord(text="two"))
    await turn.finish(closing("end"))
    assert (await state(queue)).said == ["end"]


async def test_a_turn_that_another_got_on_with_is_not_regained(queue: Queue) -> None:
    turn = await mine(queue)
    await lapse(queue)
    other = Turn(queue, await claimed(queue, "w2"))
    await other.step(NoteRecord(text="theirs"))
    await lapse(queue)
    assert not turn.regain(await claimed(queue))


async def test_a_turn_that_another_ended_is_not_regained_by_the_next_message(queue: Queue) -> None:
    turn = await mine(queue)
    await queue.post(mail("m2"))
    await lapse(queue)
    await Turn(queue, await claimed(queue, "w2")).finish(closing("theirs"))
    epoch = turn.epoch
    assert not turn.regain(await claimed(queue))
    assert turn.epoch == epoch


@pytest.mark.parametrize("gone", ["lost", "ended"])
async def test_what_we_gave_up_is_not_regained(queue: Queue, gone: str) -> None:
    turn = await mine(queue)
    await lapse(queue)
    claim = await claimed(queue)
    turn.lost.set() if gone == "lost" else setattr(turn, "ended", True)
    assert not turn.regain(claim)
