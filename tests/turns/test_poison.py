"""What cannot be read is buried with its reason, and stands in nobody's way."""

from __future__ import annotations

import pytest

from shared.bus.redis import RedisBus
from shared.turns.queue import Queue
from shared.turns.turn import Turn
from tests.turns.ground import claimed, closing, given, mail, state


async def test_a_session_with_a_key_of_the_wrong_kind_is_set_aside_and_others_go_on(desk: Queue) -> None:
    if not isinstance(desk.bus, RedisBus):
        return  # the fake's Lua raises its errors otherwise
    for session in ("bad", "good"):
        await desk.post(mail(session, session))
    await desk.bus.command("SET", f"{desk.prefix}window:bad", "no list")
    assert await desk.claim("w1") == 0  # something is due at once
    assert given(await claimed(desk)) == ["good"]
    [(id, reason)] = (await state(desk)).dead
    assert reason.startswith("unreadable") and id == "bad"
    await desk.post(mail("again", "bad"))
    assert given(await claimed(desk)) == ["again"]


async def test_a_session_whose_name_is_no_text_is_buried(desk: Queue) -> None:
    await desk.post(mail("m1"))
    entry = (await desk.bus.command("XRANGE", f"{desk.prefix}inbox", "-", "+"))[0][0]
    await desk.bus.command("RPUSH", f"{desk.prefix}mail:".encode() + b"\xff\xfe", entry)
    await desk.bus.command("ZADD", f"{desk.prefix}due", 1, b"\xff\xfe")
    claims, _ = await desk.claims("w1", 1)
    assert claims == []
    assert (await state(desk)).dead[0][1].startswith("unreadable")


@pytest.mark.parametrize("fields", [("x", "y"), ("id", "m", "data", "\x00"), ("a", "b", "c", "d")])
async def test_an_entry_of_the_inbox_without_its_fields_is_claimed_as_nonsense(
    desk: Queue, fields: tuple[str, ...]
) -> None:
    entry = await desk.bus.command("XADD", f"{desk.prefix}inbox", "*", *fields)
    await desk.bus.command("RPUSH", f"{desk.prefix}mail:s", entry)
    await desk.bus.command("ZADD", f"{desk.prefix}due", 1, "s")
    claim = await claimed(desk)
    assert len(claim.entries) == 1
    await desk.finish("s", claim.epoch, closing(dead="unreadable"))
    assert len((await state(desk)).dead) == 1


@pytest.mark.parametrize("record", [b"nonsense", b"[]", b"zzz", b"{}", b"\xff"])
async def test_a_journal_that_cannot_be_read_is_known_as_such(desk: Queue, record: bytes) -> None:
    await desk.post(mail("m1"))
    claim = await claimed(desk)
    await desk.step("s", claim.epoch, 0, 1, [record])
    await desk.release("s", claim.epoch)
    turn = Turn(desk, await claimed(desk))
    assert turn.spoiled and turn.records == []


async def test_a_window_that_cannot_be_read_is_left_to_the_store(desk: Queue) -> None:
    await desk.bus.command("RPUSH", f"{desk.prefix}window:s", "nonsense")
    await desk.bus.command("SET", f"{desk.prefix}seq:s", "nonsense")
    await desk.post(mail("m1"))
    turn = Turn(desk, await claimed(desk))
    assert (turn.window, turn.seq, turn.held, turn.spoiled) == ([], None, 1, False)
