"""A flood of one person refuses nobody else, and delays nobody else for long."""

from __future__ import annotations

import json
from typing import Any

from shared.bus import messages
from shared.bus.keys import CHATTER_OUTPUT, Names
from shared.turns import routing, scripts
from shared.turns.queue import Mail, Queue
from tests.turns.ground import claimed, closing, given, mail, state


def of(person: str, id: str, session: str = "", **more: Any) -> Mail:
    return mail(id, session or id, person=person, **more)


async def load(queue: Queue) -> dict[bytes, bytes]:
    flat = await queue.bus.command("HGETALL", f"{queue.prefix}load")
    return dict(zip(flat[::2], flat[1::2], strict=True))


async def test_a_person_s_share_is_theirs_alone(queue: Queue) -> None:
    small = Queue(queue.bus, queue.names, "chatter", share=2)
    for number in range(2):
        assert (await small.post(of("eve", f"e{number}"))).outcome == "accepted"
    refused = await small.post(of("eve", "e2"))
    assert (refused.outcome, refused.waiting, refused.theirs) == ("busy", 2, True)
    assert (await small.post(of("eve", "e0"))).outcome == "known"
    assert (await small.post(of("ada", "a"))).outcome == "accepted"


async def test_a_stop_goes_through_a_full_share_and_floods_of_them_do_not(queue: Queue) -> None:
    small = Queue(queue.bus, queue.names, "chatter", share=2)
    for number in range(2):
        await small.post(of("eve", f"e{number}", "s"))
    took = [(await small.post(of("eve", f"s{n}", "s", place="front"))).outcome for n in range(3)]
    assert took == ["accepted", "accepted", "busy"]


async def test_what_ends_leaves_its_share(queue: Queue) -> None:
    await queue.post(of("eve", "e1"))
    await queue.post(of("eve", "e2"))
    await queue.post(of("ada", "a1"))
    assert await load(queue) == {b"eve": b"2", b"ada": b"1"}
    await queue.withdraw("e2")
    assert await load(queue) == {b"eve": b"1", b"ada": b"1"}
    for _ in range(2):
        claim = await claimed(queue)
        await queue.finish(claim.session, claim.epoch, closing())
    assert await load(queue) == {}


async def test_whoever_has_little_waiting_comes_before_a_flood(queue: Queue) -> None:
    for number in range(100):
        await queue.post(of("eve", f"e{number}"))
    await queue.post(of("ada", "a1"))
    claims, _ = await queue.claims("w", 3)
    assert {claim.session for claim in claims[:2]} == {"a1", "e0"}


async def test_plain_messages_beyond_a_share_are_refused_with_an_answer_that_can_be_read(
    queue: Queue,
) -> None:
    names = Names(queue.names.namespace)
    small = Queue(queue.bus, queue.names, "chatter", share=1)
    k = await small.join()
    heard = []
    for number, (user, session) in enumerate([("eve", "s1"), ("eve", "s2"), ("ada", "s3")], 1):
        value = {"user_id": user, "content": "hello", "id": f"m{number}", "session_id": session}
        data = json.dumps(value).encode()
        heard.append((number, routing.human(names, messages.human(value), data)))
    assert await small.ingest(k, heard, names.channel(CHATTER_OUTPUT)) == [1, 2, 1]
    [said] = [json.loads(text) for text in (await state(queue)).said]
    assert said["content"] == scripts.BUSY
    assert (said["session_id"], said["in_reply_to"], said["user_id"]) == ("s2", "m2", "eve")
    assert (await state(queue)).dead == [("m2", "busy")]
    assert given(await claimed(small)) == ["m1"]
