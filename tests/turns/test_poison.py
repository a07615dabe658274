"""What cannot be read is buried with its reason, and stands in nobody's way."""

from __future__ import annotations

import pytest

from shared.bus.redis import RedisBus
from shared.turns.queue import Queue
from shared.turns.turn import Turn
from tests.turns.ground import claimed, closing, given, mail, state


async def test_a_session_with_a_key_of_the_wrong_kind_is_set_aside_and_others_go_on(queue: Queue) -> None:
    if not isinstance(queue.bus, RedisBus):
        return  # the fake's Lua raises its errors otherwise
    for session in ("bad", "good"):
        await queue.post(mail(session, session))
    await queue.bus.command("SET", f"{queue.prefix}window:bad", "no list")
    assert await queue.claim("w1") == 0  # something is due at once
    assert given(await claimed(queue)) == ["good"]
    [(id, reason)] = (await state(queue)).dead
    assert reason.startswith("unreadable") and id == "bad"
    await queue.post(mail("again", "bad"))
    assert given(await claimed(queue)) == ["again"]


async def test_a_session_whose_name_is_no_text_is_buried(queue: Queue) -> None:
    await queue.post(mail("m1"))
    entry = (await queue.bus.command("XRANGE", f"{queue.prefix}inbox", "-", "+"))[0][0]
    await queue.bus.command("RPUSH", f"{queue.prefix}mail:".encode() + b"\xff\xfe", entry)
    await queue.bus.command("ZADD", f"{queue.prefix}due", 1, b"\xff\xfe")
    claims, _ = await queue.claims("w1", 1)
    assert claims == []
    assert (await state(queue)).dead[0][1].startswith("unreadable")


@pytest.mark.parametrize("fields", [("x", "y"), ("id", "m", "data", "\x00"), ("a", "b", "c", "d")])
async def test_an_entry_of_the_inbox_without_its_fields_is_claimed_as_nonsense(
    queue: Queue, fields: tuple[str, ...]
) -> None:
    entry = await queue.bus.command("XADD", f"{queue.prefix}inbox", "*", *fields)
    await queue.bus.command("RPUSH", f"{queue.prefix}mail:s", entry)
    await queue.bus.command("ZADD", f"{queue.prefix}due", 1, "s")
    claim = await claimed(queue)
    assert len(claim.entries) == 1
    await queue.finish("s", claim.epoch, closing(dead="unreadable"))
    assert len((await state(queue)).dead) == 1


@pytest.mark.parametrize("record", [b"nonsense", b"[]", b"zzz", b"{}", b"\xff"])
async def test_a_journal_that_cannot_be_read_is_known_as_such(queue: Queue, record: bytes) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.step("s", claim.epoch, 0, 1, [record])
    await queue.release("s", claim.epoch)
    turn = Turn(queue, await claimed(queue))
    assert turn.spoiled and turn.records == []


async def test_a_window_that_cannot_be_read_is_left_to_the_store(queue: Queue) -> None:
    await queue.bus.command("RPUSH", f"{queue.prefix}window:s", "nonsense")
    await queue.bus.command("SET", f"{queue.prefix}seq:s", "nonsense")
    await queue.post(mail("m1"))
    turn = Turn(queue, await claimed(queue))
    assert (turn.window, turn.seq, turn.held, turn.spoiled) == ([], None, 1, False)
