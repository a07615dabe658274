"""Accepting a message: kept, published and acknowledged in one step."""

from __future__ import annotations

import asyncio
import time

from shared.bus.base import Bus
from shared.bus.keys import HUMAN_INPUT
from shared.turns.queue import Accepted, Queue
from tests.support.valkey import until
from tests.turns.ground import claimed, closing, given, lapse, losses, mail, state


async def test_what_is_accepted_is_kept_and_due(queue: Queue) -> None:
    assert await queue.post(mail("m1")) == Accepted("accepted")
    assert (await state(queue)).inbox == ["m1"]
    assert await queue.size() == 1
    assert given(await claimed(queue)) == ["m1"]


async def test_what_is_accepted_can_be_heard_by_whoever_subscribes(queue: Queue, bus: Bus) -> None:
    heard: list[bytes] = []
    ready = asyncio.Event()

    async def on_ready() -> None:
        ready.set()

    channel = queue.names.channel(HUMAN_INPUT)
    task = asyncio.create_task(
        bus.listener([channel], lambda _c, data: heard.append(data), on_ready, "").run()
    )
    await asyncio.wait_for(ready.wait(), 5)
    await queue.post(mail("m1", data=b"first", channel=channel))
    await queue.post(mail("m1", data=b"first", channel=channel))
    await queue.post(mail("m2", data=b"second", channel=channel))
    await until(lambda: b"second" in heard)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert heard == [b"first", b"second"]


async def test_the_same_id_again_is_known_with_its_state(queue: Queue) -> None:
    await queue.post(mail("m1"))
    assert await queue.post(mail("m1")) == Accepted("known", state="accepted")
    claim = await claimed(queue)
    await queue.finish("s", claim.epoch, closing())
    again = await queue.post(mail("m1"))
    assert again.outcome == "known"
    assert again.state.startswith("done:")
    assert (await state(queue)).inbox == []


async def test_a_post_whose_reply_was_lost_is_accepted_once(lossy: Queue) -> None:
    losses(lossy).lose = ["post"]
    receipt = await lossy.post(mail("m1"), patience=5)
    assert receipt == Accepted("known", state="accepted")
    assert losses(lossy).ran == ["post", "post"]
    assert (await state(lossy)).inbox == ["m1"]
    assert (await state(lossy)).archived == ["message"]


async def test_over_the_bound_it_is_busy_and_says_how_many_wait(queue: Queue) -> None:
    small = Queue(queue.bus, queue.names, "chatter", limit=2)
    assert [(await small.post(mail(f"m{n}", f"s{n}"))).outcome for n in range(3)] == [
        "accepted",
        "accepted",
        "busy",
    ]
    assert await small.post(mail("m9")) == Accepted("busy", waiting=2)
    assert (await small.post(mail("m1"))).outcome == "known"  # an acknowledgement that was lost is still had
    claim = await claimed(small)
    await small.finish(claim.session, claim.epoch, closing())
    assert (await small.post(mail("m9"))).outcome == "accepted"


async def test_a_full_memory_refuses_what_is_new_and_knows_what_was_accepted(queue: Queue) -> None:
    await queue.post(mail("m1"))
    await queue.bus.command("SET", f"{queue.prefix}full", "0.90")
    assert await queue.post(mail("m2")) == Accepted("busy", waiting=1)
    assert await queue.post(mail("m1")) == Accepted("known", state="accepted")
    await queue.bus.command("DEL", f"{queue.prefix}full")
    assert (await queue.post(mail("m2"))).outcome == "accepted"


async def test_what_ends_work_is_taken_although_the_queue_is_full(queue: Queue) -> None:
    small = Queue(queue.bus, queue.names, "chatter", limit=1)
    await small.post(mail("m1"))
    assert (await small.post(mail("stop", place="front"))).outcome == "accepted"
    assert (await small.post(mail("more", place="join"))).outcome == "accepted"


async def test_messages_of_one_session_stay_in_order(queue: Queue) -> None:
    for n in range(5):
        await queue.post(mail(f"m{n}"))
    answered = []
    for _ in range(5):
        claim = await claimed(queue)
        answered += given(claim)
        await queue.finish("s", claim.epoch, closing())
    assert answered == [f"m{n}" for n in range(5)]
    assert await queue.claim("w1") == -1


async def test_while_a_turn_runs_no_other_of_its_session_is_handed_out(queue: Queue) -> None:
    await queue.post(mail("m1"))
    await queue.post(mail("m2"))
    await claimed(queue)
    wait = await queue.claim("w2")
    assert isinstance(wait, int)
    assert 0 < wait <= 60_000


async def test_other_sessions_do_not_wait_for_one_another(queue: Queue) -> None:
    await queue.post(mail("m1", "a"))
    await queue.post(mail("m2", "b"))
    assert {(await claimed(queue, w)).session for w in ("w1", "w2")} == {"a", "b"}


async def test_a_message_that_may_join_is_handed_over_at_the_next_step(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.post(mail("amend", place="join"))
    await queue.post(mail("m2"))
    came = await queue.step("s", claim.epoch, 0, 1, [])
    assert [entry.id for entry in came] == ["amend"]


async def test_where_no_turn_runs_what_would_join_opens_one(queue: Queue) -> None:
    await queue.post(mail("amend", place="join"))
    assert given(await claimed(queue)) == ["amend"]


async def test_what_joins_before_the_claim_is_given_with_it(queue: Queue) -> None:
    await queue.post(mail("m1"))
    await queue.post(mail("amend", place="join"))
    assert given(await claimed(queue)) == ["m1", "amend"]


async def test_a_stop_goes_before_everything_else_that_joins(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.post(mail("amend", place="join"))
    await queue.post(mail("stop", place="front"))
    came = await queue.step("s", claim.epoch, 0, 1, [])
    assert [entry.id for entry in came] == ["stop", "amend"]


async def test_a_stop_is_read_first_by_whoever_takes_the_turn_over(queue: Queue) -> None:
    await queue.post(mail("m1"))
    await claimed(queue)
    await queue.post(mail("amend", place="join"))
    await queue.post(mail("stop", place="front"))
    await lapse(queue)
    assert given(await claimed(queue, "w2")) == ["m1", "stop", "amend"]


async def test_a_reply_to_the_turn_that_runs_joins_it(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    for n, to in enumerate(("m1", "m1.p1")):
        await queue.post(mail(f"r{n}", place="reply", reply=to))
    came = await queue.step("s", claim.epoch, 0, 1, [])
    assert [entry.id for entry in came] == ["r0", "r1"]


async def test_a_reply_to_something_else_waits_for_a_turn_of_its_own(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    for n, to in enumerate(("m0", "m10", "m")):
        await queue.post(mail(f"r{n}", place="reply", reply=to))
    assert await queue.step("s", claim.epoch, 0, 1, []) == []
    await queue.finish("s", claim.epoch, closing())
    assert given(await claimed(queue)) == ["r0"]


async def test_a_reply_where_nothing_runs_waits_like_any_message(queue: Queue) -> None:
    await queue.post(mail("m1"))
    await queue.post(mail("r1", place="reply", reply="m1"))
    assert given(await claimed(queue)) == ["m1"]


async def test_a_deadline_counts_from_the_acceptance_or_is_a_moment_or_none(queue: Queue) -> None:
    await queue.post(mail("a", "a", deadline=-60_000))
    await queue.post(mail("b", "b", deadline=1_900_000_000_123))
    await queue.post(mail("c", "c", deadline=0))
    found = {}
    for _ in range(3):
        claim = await claimed(queue)
        found[claim.session] = claim.entries[0].deadline
    assert abs(found["a"] - (time.time() * 1000 + 60_000)) < 10_000
    assert (found["b"], found["c"]) == (1_900_000_000_123, 0)


async def test_what_was_accepted_is_on_its_way_to_the_store_at_once(queue: Queue) -> None:
    await queue.post(mail("m1"))
    assert (await state(queue)).archived == ["message"]
