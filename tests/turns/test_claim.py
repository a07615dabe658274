"""Claiming, leases and epochs: who may go on with a turn."""

from __future__ import annotations

import pytest

from shared.errors import BusUnreachable, Fenced
from shared.turns.queue import Claim, Queue
from tests.support.valkey import eventually
from tests.turns.ground import claimed, closing, given, lapse, losses, mail, stale, state


async def test_nothing_is_due_where_nothing_waits(queue: Queue) -> None:
    assert await queue.claim("w1") == -1


async def test_a_claim_brings_all_that_is_needed_to_go_on(queue: Queue) -> None:
    await queue.post(mail("m1", deadline=0))
    claim = await claimed(queue)
    assert (claim.session, given(claim), claim.tries, claim.fails) == ("s", ["m1"], 1, 0)
    assert (claim.journal, claim.window, claim.seq) == ([], [], None)
    assert claim.entries[0].data == mail("m1").data
    assert claim.now > 1_700_000_000_000


async def test_what_has_been_due_longest_is_claimed_first(queue: Queue) -> None:
    for name in ("a", "b", "c"):
        await queue.post(mail(name, name))
    await lapse(queue, "b")
    assert (await claimed(queue)).session == "b"


async def test_epochs_only_rise(queue: Queue) -> None:
    epochs = []
    for n in range(4):
        await queue.post(mail(f"m{n}", f"s{n % 2}"))
        claim = await claimed(queue)
        epochs.append(claim.epoch)
        await queue.finish(claim.session, claim.epoch, closing())
    assert epochs == sorted(set(epochs))


async def test_a_turn_whose_lease_ran_out_is_taken_over_with_its_journal(queue: Queue) -> None:
    await queue.post(mail("m1"))
    first = await claimed(queue, "w1")
    await queue.step("s", first.epoch, 0, 1, [b"one", b"two"])
    await lapse(queue)
    second = await claimed(queue, "w2")
    assert (second.journal, given(second)) == ([b"one", b"two"], ["m1"])
    assert second.epoch > first.epoch


async def test_a_lease_runs_out_by_itself(queue: Queue) -> None:
    brief = Queue(queue.bus, queue.names, "chatter", lease_ms=80)
    await brief.post(mail("m1"))
    await claimed(brief, "w1")

    async def taken() -> bool:
        return isinstance(await brief.claim("w2"), Claim)

    assert isinstance(await brief.claim("w2"), int)
    await eventually(taken, 3)


async def test_a_beat_holds_a_lease_and_tells_what_was_lost(queue: Queue) -> None:
    for name in ("a", "b"):
        await queue.post(mail(name, name))
    mine = {(claim := await claimed(queue, "w1")).session: claim.epoch for _ in range(2)}
    await lapse(queue, "a")
    assert await queue.beat(mine) == []
    assert isinstance(await queue.claim("w2"), int)  # the beat came before somebody else did
    await lapse(queue, "a")
    await claimed(queue, "w2")
    assert await queue.beat(mine) == ["a"]
    assert await queue.beat({}) == []


async def test_a_beat_for_a_turn_that_ended_does_not_bring_it_back(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.finish("s", claim.epoch, closing())
    assert await queue.beat({"s": claim.epoch}) == ["s"]
    assert await queue.claim("w1") == -1


async def test_whoever_lost_the_lease_can_commit_nothing(queue: Queue) -> None:
    await queue.post(mail("m1"))
    zombie = await claimed(queue, "w1")
    await lapse(queue)
    heir = await claimed(queue, "w2")
    with pytest.raises(Fenced):
        await queue.step("s", zombie.epoch, 0, 1, [b"late"])
    with pytest.raises(Fenced):
        await queue.send("s", zombie.epoch, "chatter-output", "late")
    with pytest.raises(Fenced):
        await queue.finish("s", zombie.epoch, closing("late"))
    await queue.release("s", zombie.epoch)
    assert await stale(queue) == 3
    assert (await state(queue)).said == []
    assert await queue.step("s", heir.epoch, 0, 1, [b"mine"]) == []
    await queue.finish("s", heir.epoch, closing("answer"))
    assert (await state(queue)).said == ["answer"]


async def test_whoever_lost_the_lease_can_commit_nothing_after_the_end_either(queue: Queue) -> None:
    await queue.post(mail("m1"))
    zombie = await claimed(queue, "w1")
    await lapse(queue)
    heir = await claimed(queue, "w2")
    await queue.finish("s", heir.epoch, closing("answer"))
    with pytest.raises(Fenced):
        await queue.finish("s", zombie.epoch, closing("late"))
    with pytest.raises(Fenced):
        await queue.step("s", zombie.epoch, 0, 1, [b"late"])
    await queue.post(mail("m2"))
    assert (await claimed(queue)).journal == []
    assert (await state(queue)).said == ["answer"]


async def test_deaths_are_counted_and_a_step_forgives_them(queue: Queue) -> None:
    await queue.post(mail("m1"))
    for tries in (1, 2, 3):
        claim = await claimed(queue, f"w{tries}")
        assert claim.tries == tries
        await lapse(queue)
    claim = await claimed(queue)
    await queue.step("s", claim.epoch, 0, 1, [b"got on"])
    await lapse(queue)
    assert (await claimed(queue)).tries == 2


async def test_looking_for_mail_forgives_no_death(queue: Queue) -> None:
    await queue.post(mail("m1"))
    await claimed(queue)
    await lapse(queue)
    claim = await claimed(queue)
    await queue.step("s", claim.epoch, 0, 1, [])
    await lapse(queue)
    assert (await claimed(queue)).tries == 3


async def test_a_claim_whose_reply_was_lost_gives_the_same_turn_again(lossy: Queue) -> None:
    await lossy.post(mail("m1"))
    losses(lossy).lose = ["claim"]
    with pytest.raises(BusUnreachable):
        await lossy.claim("w1")
    claim = await claimed(lossy, "w1")
    assert (claim.session, given(claim), claim.tries) == ("s", ["m1"], 1)
    assert await lossy.step("s", claim.epoch, 0, 1, [b"x"]) == []


async def test_a_claim_whose_reply_was_lost_gives_nothing_twice_when_others_went_on_with_it(
    lossy: Queue, queue: Queue
) -> None:
    await lossy.post(mail("m1"))
    losses(lossy).lose = ["claim"]
    with pytest.raises(BusUnreachable):
        await lossy.claim("w1")
    await lapse(lossy)
    heir = await claimed(queue, "w2")
    assert isinstance(await lossy.claim("w1"), int)
    assert await queue.step("s", heir.epoch, 0, 1, [b"x"]) == []


async def test_a_repeated_claim_after_a_lost_refusal_claims_what_has_come_since(lossy: Queue) -> None:
    losses(lossy).lose = ["claim"]
    with pytest.raises(BusUnreachable):
        await lossy.claim("w1")
    await lossy.post(mail("m1"))
    assert given(await claimed(lossy, "w1")) == ["m1"]


async def test_a_session_in_which_nothing_waits_is_forgotten(queue: Queue) -> None:
    await queue.bus.command("ZADD", f"{queue.prefix}due", 1, "empty")
    assert await queue.claim("w1") == -1
    assert await queue.bus.command("ZCARD", f"{queue.prefix}due") == 0


async def test_the_number_of_the_last_message_is_brought_when_the_messages_themselves_are_gone(
    queue: Queue,
) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.finish("s", claim.epoch, closing(window=[b"{}"], seq=7))
    await queue.bus.command("DEL", f"{queue.prefix}window:s")
    await queue.post(mail("m2"))
    later = await claimed(queue)
    assert (later.window, later.seq) == ([], 7)


async def test_two_claims_one_after_another_are_two_turns(queue: Queue) -> None:
    await queue.post(mail("a", "a"))
    await queue.post(mail("b", "b"))
    assert {(await claimed(queue)).session, (await claimed(queue)).session} == {"a", "b"}


async def test_a_turn_that_is_given_back_waits_as_long_as_was_said(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.release("s", claim.epoch, 50_000, failed=True)
    wait = await queue.claim("w1")
    assert isinstance(wait, int)
    assert 40_000 < wait <= 50_000
    await lapse(queue)
    again = await claimed(queue)
    assert (again.fails, again.tries) == (1, 1)


async def test_handing_over_is_no_failure(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.release("s", claim.epoch)
    again = await claimed(queue, "w2")
    assert (again.fails, again.tries) == (0, 1)
    assert again.epoch > claim.epoch


async def test_a_release_whose_reply_was_lost_counts_once(lossy: Queue) -> None:
    await lossy.post(mail("m1"))
    claim = await claimed(lossy)
    losses(lossy).lose = ["release"]
    await lossy.release("s", claim.epoch, 0, failed=True)
    assert losses(lossy).ran.count("release") == 2
    again = await claimed(lossy)
    assert (again.fails, again.tries) == (1, 1)


async def test_a_release_that_comes_late_takes_nothing_from_the_heir(queue: Queue) -> None:
    await queue.post(mail("m1"))
    zombie = await claimed(queue, "w1")
    await lapse(queue)
    heir = await claimed(queue, "w2")
    await queue.release("s", zombie.epoch, 0, failed=True)
    assert await queue.step("s", heir.epoch, 0, 1, [b"mine"]) == []


async def test_what_ended_leaves_no_keys_of_its_turn_behind(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.step("s", claim.epoch, 0, 1, [b"one"])
    await queue.finish("s", claim.epoch, closing())
    for key in ("turn", "given", "journal", "mail", "join"):
        assert await queue.bus.command("EXISTS", f"{queue.prefix}{key}:s") == 0, key
    assert await queue.bus.command("ZCARD", f"{queue.prefix}due") == 0
    assert await queue.size() == 0
