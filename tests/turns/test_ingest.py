"""Numberings of plain messages: identity is position, and a newer numbering waits for the older one's end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shared.bus.base import Bus
from shared.errors import BusUnreachable
from shared.turns.queue import Mail, Queue
from tests.turns.ground import claimed, closing, given, losses, mail, state

OUTPUT = "chatter-output"


def plain(text: str = "hi", session: str = "s", id: str = "", **more: Any) -> Mail:
    """A message without an id, as plain PUBLISH brings it."""
    return mail(id, session, data=text.encode(), **more)


async def hear(queue: Queue, k: int, i: int, message: Mail | None = None) -> int:
    (taken,) = await queue.ingest(k, [(i, message or plain())], OUTPUT)
    return taken


async def test_each_numbering_has_a_number_of_its_own(queue: Queue) -> None:
    assert [await queue.join() for _ in range(3)] == [1, 2, 3]


async def test_a_message_is_taken_in_once_however_many_hand_it_in(queue: Queue) -> None:
    k = await queue.join()
    assert [await hear(queue, k, 1) for _ in range(3)] == [1, 0, 0]
    assert (await state(queue)).inbox == [f"p:{k}:1"]


async def test_several_are_taken_in_at_once_and_what_of_them_is_known_is_not_taken_again(
    queue: Queue,
) -> None:
    k = await queue.join()
    await queue.ingest(k, [(1, plain("one")), (3, plain("three"))], OUTPUT)
    letter = Mail("", "", "human-input", b"\xff", "dead", 0, refusal="sorry", reason="malformed")
    heard = [(1, plain("one")), (3, plain("three")), (4, letter), (5, plain("five", "t"))]
    assert await queue.ingest(k, heard, OUTPUT) == [0, 0, 2, 1]
    found = await state(queue)
    assert found.inbox == [f"p:{k}:{i}" for i in (1, 3, 5)]
    assert [id for id, _ in found.dead] == [f"p:{k}:4"]


async def test_identical_messages_one_after_another_are_two(queue: Queue) -> None:
    k = await queue.join()
    assert await hear(queue, k, 1, plain("same")) == 1
    assert await hear(queue, k, 2, plain("same")) == 1
    assert len((await state(queue)).inbox) == 2


async def test_the_senders_id_is_kept_and_a_second_message_with_it_is_known(queue: Queue) -> None:
    k = await queue.join()
    assert await hear(queue, k, 1, plain(id="mine")) == 1
    assert await hear(queue, k, 2, plain(id="mine")) == 0
    assert (await state(queue)).inbox == ["mine"]
    assert (await queue.post(mail("mine"))).outcome == "known"


async def test_a_hearing_whose_reply_was_lost_is_taken_in_once(lossy: Queue) -> None:
    k = await lossy.join()
    losses(lossy).lose = ["ingest"]
    assert await hear(lossy, k, 1) == 0
    assert (await state(lossy)).inbox == [f"p:{k}:1"]


async def test_a_join_whose_reply_was_lost_only_leaves_a_numbering_that_nobody_uses(lossy: Queue) -> None:
    losses(lossy).lose = ["join"]
    with pytest.raises(BusUnreachable):
        await lossy.join()
    k = await lossy.join()
    assert k == 2
    assert await hear(lossy, k, 1) == 1


async def test_a_numbering_that_is_too_old_takes_nothing_more(queue: Queue) -> None:
    for _ in range(66):
        k = await queue.join()
    assert await hear(queue, 1, 1) == -1
    assert await hear(queue, k + 1, 1) == -1
    assert await hear(queue, k, 1) == 1


async def subscribe(bus: Bus, channel: str) -> asyncio.Task[None]:
    ready = asyncio.Event()

    async def on_ready() -> None:
        ready.set()

    task = asyncio.create_task(bus.listener([channel], lambda _c, _d: None, on_ready, "").run())
    await asyncio.wait_for(ready.wait(), 5)
    return task


async def test_who_joins_alone_need_not_wait_for_anybody(queue: Queue, bus: Bus) -> None:
    await queue.join()
    k = await queue.join()
    assert await hear(queue, k, 1) == 1


async def test_messages_of_a_newer_numbering_wait_until_the_older_one_was_heard_to_its_end(
    queue: Queue, bus: Bus
) -> None:
    markers = [await subscribe(bus, queue.marker) for _ in range(2)]
    older = await queue.join()
    await queue.close_numbering(older - 1)
    newer = await queue.join()
    assert await hear(queue, newer, 1, plain("second")) == -2
    assert await hear(queue, older, 1, plain("first")) == 1
    await queue.close_numbering(older)
    assert await hear(queue, newer, 1, plain("second")) == 1
    answered = []
    for _ in range(2):
        claim = await claimed(queue)
        answered += [entry.data for entry in claim.entries]
        await queue.finish("s", claim.epoch, closing())
    assert answered == [b"first", b"second"]
    for marker in markers:
        marker.cancel()
    await asyncio.gather(*markers, return_exceptions=True)


async def test_an_older_ear_that_died_holds_up_the_newer_ones_for_three_seconds_at_most(
    queue: Queue, bus: Bus
) -> None:
    markers = [await subscribe(bus, queue.marker) for _ in range(2)]
    await queue.join()
    newer = await queue.join()
    wait = float(await queue.bus.command("HGET", f"{queue.prefix}ears", f"w{newer}"))
    seconds, micros = await queue.bus.command("TIME")
    left = wait - (int(seconds) * 1000 + int(micros) // 1000)
    assert 2000 < left <= 3000
    assert await hear(queue, newer, 1) == -2
    await queue.join()  # whoever joins next does not make it longer
    await queue.bus.command("HSET", f"{queue.prefix}ears", f"w{newer}", wait - left - 1)
    assert await hear(queue, newer, 1) == 1
    for marker in markers:
        marker.cancel()
    await asyncio.gather(*markers, return_exceptions=True)


async def test_closing_an_older_numbering_late_opens_nothing_again(queue: Queue) -> None:
    await queue.close_numbering(5)
    await queue.close_numbering(3)
    assert await queue.bus.command("HGET", f"{queue.prefix}ears", "closed") == b"5"


async def test_over_the_bound_the_sender_is_told_and_the_message_is_a_dead_letter(queue: Queue) -> None:
    small = Queue(queue.bus, queue.names, "chatter", limit=1)
    k = await small.join()
    assert await hear(small, k, 1) == 1
    refused = plain("one too many", refusal="busy: try later")
    assert await hear(small, k, 2, refused) == 2
    found = await state(small)
    assert found.dead == [(f"p:{k}:2", "busy")]
    assert found.said == ["busy: try later"]
    assert len(found.inbox) == 1


async def test_a_dead_letter_is_buried_once_and_its_sender_told_once(lossy: Queue) -> None:
    k = await lossy.join()
    losses(lossy).lose = ["ingest"]
    letter = Mail("", "", "human-input", b"\xff", "dead", 0, refusal="sorry", reason="malformed: not UTF-8")
    assert await hear(lossy, k, 1, letter) == 0
    found = await state(lossy)
    assert found.dead == [(f"p:{k}:1", "malformed: not UTF-8")]
    assert found.said == ["sorry"]
    assert found.inbox == []


async def test_an_answer_by_plain_publish_reaches_whoever_asked_once(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.step("s", claim.epoch, 0, 1, [], ["m1.1.1"])
    k = await queue.join()
    answer = Mail("any", "m1.1.1", "agent:chatter", b"the answer", "answer", 0)
    assert await hear(queue, k, 1, answer) == 1
    assert await hear(queue, k, 2, answer) == 0
    assert await queue.respond("m1.1.1", "agent:chatter", b"ours") == "late"
    (entry,) = await queue.step("s", claim.epoch, 0, 1, [])
    assert entry.data == b"the answer"


async def test_an_answer_to_no_question_is_a_dead_letter(queue: Queue) -> None:
    k = await queue.join()
    answer = Mail("any", "never.asked", "agent:chatter", b"x", "answer", 0)
    assert await hear(queue, k, 1, answer) == 2
    assert [reason for _, reason in (await state(queue)).dead] == ["unknown_request"]


@pytest.mark.parametrize(("place", "joined"), [("join", True), ("front", True), ("mail", False)])
async def test_where_a_plain_message_belongs_is_decided_as_for_a_post(
    queue: Queue, place: str, joined: bool
) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    k = await queue.join()
    assert await hear(queue, k, 1, plain(id="x", place=place)) == 1
    came = await queue.step("s", claim.epoch, 0, 1, [])
    assert [entry.id for entry in came] == (["x"] if joined else [])


async def test_a_plain_reply_to_the_turn_that_runs_joins_it(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    k = await queue.join()
    await hear(queue, k, 1, plain(id="x", place="reply", reply="m1"))
    await hear(queue, k, 2, plain(id="y", place="reply", reply="other"))
    came = await queue.step("s", claim.epoch, 0, 1, [])
    assert [entry.id for entry in came] == ["x"]
    await queue.finish("s", claim.epoch, closing())
    assert given(await claimed(queue)) == ["y"]
