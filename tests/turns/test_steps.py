"""Steps, what is said, and the end of a turn; each of them also when its reply was lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.errors import PromptDockError
from shared.turns.queue import Queue
from shared.turns.records import COMPRESS_ABOVE, pack, unpack
from tests.turns.ground import claimed, closing, given, lapse, losses, mail, state


async def journal(queue: Queue) -> list[bytes]:
    found: list[bytes] = await queue.bus.command("LRANGE", f"{queue.prefix}journal:s", 0, -1)
    return found


async def test_steps_are_kept_in_order(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.step("s", claim.epoch, 0, 1, [b"one"])
    await queue.step("s", claim.epoch, 1, 1, [b"two", b"\x00\xff"])
    assert await journal(queue) == [b"one", b"two", b"\x00\xff"]


async def test_a_step_whose_reply_was_lost_is_written_once_and_loses_no_mail(lossy: Queue) -> None:
    await lossy.post(mail("m1"))
    claim = await claimed(lossy)
    await lossy.post(mail("amend", place="join"))
    losses(lossy).lose = ["step"]
    came = await lossy.step("s", claim.epoch, 0, 1, [b"one", b"two"])
    assert [entry.id for entry in came] == ["amend"]
    assert losses(lossy).ran.count("step") == 2
    assert await journal(lossy) == [b"one", b"two"]


async def test_a_step_renews_the_lease(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await lapse(queue)
    await queue.step("s", claim.epoch, 0, 1, [b"one"])
    assert isinstance(await queue.claim("w2"), int)


async def test_a_journal_holds_at_most_eight_mebibytes(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    for n in range(8):
        await queue.step("s", claim.epoch, n, 1, [b"x" * 1_000_000])
    with pytest.raises(PromptDockError, match="journal is full"):
        await queue.step("s", claim.epoch, 8, 1, [b"x" * 1_000_000])
    assert len(await journal(queue)) == 8
    await queue.finish("s", claim.epoch, closing())  # there is still an end to it


async def test_progress_is_said_in_order_before_the_closing_output(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.send("s", claim.epoch, "chatter-output", "one")
    await queue.send("s", claim.epoch, "chatter-output", "two")
    await queue.finish("s", claim.epoch, closing("end"))
    assert (await state(queue)).said == ["one", "two", "end"]


async def test_what_belongs_to_no_turn_can_be_said(queue: Queue) -> None:
    await queue.announce("chatter-output", "hello")
    assert (await state(queue)).said == ["hello"]


async def test_the_end_answers_every_message_that_was_given(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.post(mail("amend", place="join"))
    await queue.step("s", claim.epoch, 0, 1, [])
    await queue.finish("s", claim.epoch, closing("end"))
    for id in ("m1", "amend"):
        assert (await queue.post(mail(id))).state.startswith("done:")
    assert (await state(queue)).inbox == []


async def test_a_finish_whose_reply_was_lost_says_one_thing_once(lossy: Queue) -> None:
    await lossy.post(mail("m1"))
    claim = await claimed(lossy)
    losses(lossy).lose = ["finish", "finish"]
    await lossy.finish("s", claim.epoch, closing("end", rows=b"rows", window=[b"w"], seq=1))
    assert losses(lossy).ran.count("finish") == 3
    found = await state(lossy)
    assert (found.said, found.archived) == (["end"], ["message", "turn"])
    await lossy.post(mail("m2"))
    assert (await claimed(lossy)).window == [b"w"]


async def test_mail_that_waits_makes_the_session_due_again(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.post(mail("m2"))
    await queue.post(mail("too late to join", place="join"))
    await queue.finish("s", claim.epoch, closing())
    assert given(await claimed(queue)) == ["m2", "too late to join"]


async def test_the_window_grows_by_what_a_turn_adds_and_loses_what_it_drops(queue: Queue) -> None:
    for n, (drop, window) in enumerate([(0, [b"a", b"b"]), (0, [b"c", b"d"]), (2, [b"e", b"f"])]):
        await queue.post(mail(f"m{n}"))
        claim = await claimed(queue)
        await queue.finish("s", claim.epoch, closing(window=window, drop=drop, seq=10 + n))
    await queue.post(mail("last"))
    claim = await claimed(queue)
    assert (claim.window, claim.seq) == ([b"c", b"d", b"e", b"f"], 12)


async def test_the_window_is_kept_for_as_long_as_was_said(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.finish("s", claim.epoch, closing(window=[b"a"], seq=1, window_ms=50_000))
    assert 40_000 < await queue.bus.command("PTTL", f"{queue.prefix}window:s") <= 50_000


async def test_a_turn_that_is_given_up_leaves_dead_letters_with_the_reason(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.post(mail("amend", place="join"))
    await queue.step("s", claim.epoch, 0, 1, [])
    await queue.finish("s", claim.epoch, closing("sorry", dead="poison"))
    found = await state(queue)
    assert found.dead == [("m1", "poison"), ("amend", "poison")]
    assert found.said == ["sorry"]
    assert found.archived.count("dead") == 2


async def test_a_dead_letter_holds_all_that_is_needed_to_play_it_again(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.finish("s", claim.epoch, closing(dead="poison"))
    ((_, flat),) = await queue.bus.command("XRANGE", f"{queue.prefix}dead", "-", "+")
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    letter = mail("m1")
    assert fields == {
        b"reason": b"poison",
        b"id": b"m1",
        b"session": b"s",
        b"channel": letter.channel.encode(),
        b"data": letter.data,
    }


# -- requests between agents --------------------------------------------------------------------------------


async def asking(queue: Queue) -> int:
    """A turn that waits for the answer to request `m1.1.1`; its epoch."""
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.step("s", claim.epoch, 0, 1, [], ["m1.1.1"])
    return claim.epoch


async def test_an_answer_goes_to_the_turn_that_waits_for_it(queue: Queue) -> None:
    epoch = await asking(queue)
    assert await queue.respond("m1.1.1", "agent:chatter", b"the answer") == "delivered"
    (entry,) = await queue.step("s", epoch, 0, 1, [])
    assert (entry.channel, entry.data) == ("agent:chatter", b"the answer")


async def test_the_first_answer_wins(queue: Queue) -> None:
    epoch = await asking(queue)
    assert await queue.respond("m1.1.1", "agent:chatter", b"first") == "delivered"
    assert await queue.respond("m1.1.1", "agent:chatter", b"second") == "late"
    assert [entry.data for entry in await queue.step("s", epoch, 0, 1, [])] == [b"first"]


async def test_an_answer_whose_reply_was_lost_is_delivered_once(lossy: Queue) -> None:
    epoch = await asking(lossy)
    losses(lossy).lose = ["respond"]
    assert await lossy.respond("m1.1.1", "agent:chatter", b"the answer") == "late"
    assert [entry.data for entry in await lossy.step("s", epoch, 0, 1, [])] == [b"the answer"]


async def test_an_answer_that_nobody_asked_for_is_told_so(queue: Queue) -> None:
    assert await queue.respond("nobody", "agent:chatter", b"x") == "unasked"
    assert await queue.size() == 0


async def test_an_answer_after_the_turns_end_opens_a_turn_of_its_own(queue: Queue) -> None:
    epoch = await asking(queue)
    await queue.finish("s", epoch, closing())
    assert await queue.respond("m1.1.1", "agent:chatter", b"late") == "delivered"
    claim = await claimed(queue)
    assert [entry.data for entry in claim.entries] == [b"late"]


async def test_a_request_that_nobody_took_up_can_be_taken_back(queue: Queue) -> None:
    await queue.post(mail("r1", "r1"))
    assert await queue.withdraw("r1") == "withdrawn"
    assert (await state(queue)).inbox == []
    assert await queue.claim("w1") == -1
    assert (await queue.post(mail("r1", "r1"))).state == "withdrawn"


async def test_taking_back_twice_harms_nothing(lossy: Queue) -> None:
    await lossy.post(mail("r1", "r1"))
    await lossy.post(mail("r2", "r2"))
    assert await lossy.withdraw("r1") == "withdrawn"
    assert await lossy.withdraw("r1") == "gone"
    assert given(await claimed(lossy)) == ["r2"]


async def test_a_request_that_is_worked_on_is_told_to_stop(queue: Queue) -> None:
    await queue.post(mail("r1", "r1"))
    claim = await claimed(queue)
    assert await queue.withdraw("r1") == "running"
    await queue.finish("r1", claim.epoch, closing(""))
    assert await queue.withdraw("r1") == "gone"


async def test_taking_back_a_request_that_never_was_harms_nothing(queue: Queue) -> None:
    assert await queue.withdraw("nothing") == "gone"


# -- what lies in the journal ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "record",
    [
        {"k": "note", "text": "Größe 👋"},
        {"k": "model", "content": [{"type": "text", "text": "x" * 100_000}]},
        {"k": "result", "content": {"nested": {"list": [1, 2.5, None, True]}}},
        {"k": "note", "text": "z" * COMPRESS_ABOVE},
    ],
)
def test_a_record_is_the_same_after_packing(record: dict[str, Any]) -> None:
    assert unpack(pack(record)) == record


def test_a_large_record_is_compressed_and_a_small_one_can_be_read() -> None:
    small, large = {"k": "note", "text": "x" * 100}, {"k": "note", "text": "x" * 100_000}
    assert json.loads(pack(small)) == small
    assert len(pack(large)) < 2000


def test_text_that_is_no_text_does_not_break_a_record() -> None:
    assert unpack(pack({"k": "note", "text": "half \ud800 a character"}))["text"].startswith("half ")


async def test_for_whom_a_session_asks_is_noted_and_kept_where_it_was_noted_before(queue: Queue) -> None:
    assert await queue.asker("s") == {}
    await queue.remember_asker("s", {"user_id": "ann"}, anew=False)
    await queue.remember_asker("s", {"user_id": "eve"}, anew=False)
    assert await queue.asker("s") == {"user_id": "ann"}
    await queue.remember_asker("s", {"user_id": "ada"})
    assert await queue.asker("s") == {"user_id": "ada"}


async def test_an_answer_finds_the_session_that_expects_it(queue: Queue) -> None:
    assert await queue.respond("r1", "agent:chatter", b"{}") == "unasked"
    await queue.expect_answer("r1", "s")
    assert await queue.respond("r1", "agent:chatter", b"{}") == "delivered"
    assert (await claimed(queue)).session == "s"


async def test_the_window_that_a_turn_left_can_be_read_without_a_turn(queue: Queue) -> None:
    assert (await queue.window("s"), await queue.newest_record("s")) == ([], None)
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.finish("s", claim.epoch, closing(window=[b"one", b"two"]))
    assert (await queue.window("s"), await queue.newest_record("s")) == ([b"one", b"two"], b"two")
