"""A message finds its session by what it replies to, by a number, or begins one: in the step that accepts it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from shared.bus import messages
from shared.bus.keys import CHATTER_OUTPUT
from shared.errors import BadMessage
from shared.store.records import Post
from shared.turns import outbox, routing, threads
from shared.turns.queue import Accepted, Claim, Queue, ThreadPlace
from shared.turns.threads import Thread
from tests.turns.ground import claimed, closing, given, lapse, state

ROOM = "discord:7"


async def post(queue: Queue, id: str, trusted: bool = True, **fields: Any) -> Accepted:
    """What a gateway posts for a person: a message in the room, unless `fields` say otherwise."""
    value = {"user_id": "ada", "content": f"words of {id}", "id": id, "channel": ROOM} | fields
    value = {name: item for name, item in value.items() if item is not None}
    data = json.dumps(value).encode()
    return await queue.post(routing.human(queue.names, messages.human(value), data, trusted))


async def posted(queue: Queue, session: str, output: str, *ids: str, **fields: Any) -> Accepted:
    """A surface says under which ids it shows an output."""
    fields |= {"type": "posted", "session_id": session, "output": output, "surface_ids": list(ids)}
    return await post(queue, f"report-{output}", content=None, **fields)


async def ended(queue: Queue) -> Claim:
    """The next turn, carried out."""
    claim = await claimed(queue)
    await queue.finish(claim.session, claim.epoch, closing())
    return claim


async def there(queue: Queue, who: str = "ada", channel: str = ROOM) -> list[Thread]:
    return await threads.listed(queue.bus, queue.names, who, channel)


async def states(queue: Queue, who: str = "ada") -> dict[int, str]:
    return {thread.number: thread.state for thread in await there(queue, who)}


async def let_go(queue: Queue, number: int) -> None:
    """A day has passed since the last word of a thread."""
    await queue.bus.command("ZADD", f"{queue.prefix}threads:{ROOM}", 1, number)


async def test_where_a_surface_has_replies_each_message_that_is_none_begins_a_thread(queue: Queue) -> None:
    sent = [await post(queue, f"m{n}", replies=True) for n in range(3)]
    assert len({one.session for one in sent}) == 3
    assert all(one.session.startswith("thread:") for one in sent)
    assert [(one.number, one.session) for one in await there(queue)] == [
        (n, one.session) for n, one in enumerate(sent, 1)
    ]
    claim = await claimed(queue)
    assert claim.thread == ThreadPlace(ROOM, 1)
    assert claim.entries[0].message()["session_id"] == claim.session == sent[0].session


async def test_without_replies_a_person_has_one_conversation_in_a_channel_and_it_has_no_number(
    queue: Queue,
) -> None:
    assert (await post(queue, "m1")).session == (await post(queue, "m2")).session == f"on:{ROOM}:ada"
    assert (await claimed(queue)).thread == ThreadPlace(ROOM, 0)
    assert await there(queue) == []


async def test_messages_of_the_same_moment_get_numbers_of_their_own(queue: Queue) -> None:
    await asyncio.gather(*(post(queue, f"m{n}", replies=True) for n in range(20)))
    assert sorted(await states(queue)) == list(range(1, 21))


async def test_each_channel_has_numbers_of_its_own(queue: Queue) -> None:
    await post(queue, "m1", replies=True)
    await post(queue, "m2", replies=True, channel="discord:8")
    found = await threads.listed(queue.bus, queue.names, "ada")
    assert [(one.channel, one.number) for one in found] == [(ROOM, 1), ("discord:8", 1)]


async def test_a_message_that_is_sent_again_begins_nothing_again(lossy: Queue) -> None:
    first = await post(lossy, "m1", replies=True)
    assert (await post(lossy, "m1", replies=True)).outcome == "known"
    assert [one.session for one in await there(lossy)] == [first.session]
    assert (await posted(lossy, first.session, "m1.end", "901")).outcome == "accepted"
    assert (await post(lossy, "m1", reply_to="901")).outcome == "known"


async def test_a_reply_to_what_a_surface_posted_goes_on_in_its_finished_thread(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    await ended(queue)
    await posted(queue, begun.session, "m1.end", "901", "902")
    for id, reply in (("m2", "901"), ("m3", "902")):
        assert (await post(queue, id, replies=True, reply_to=reply)).session == begun.session
        entry = (await ended(queue)).entries[0]
        assert entry.message()["in_reply_to"] == "m1.end"
    assert await states(queue) == {1: "completed"}


@pytest.mark.parametrize("reply", ["m1", "m1.end", "m1.t.x", "77"])
async def test_a_reply_may_name_a_message_a_turn_an_output_or_the_person_s_own_post(
    queue: Queue, reply: str
) -> None:
    begun = await post(queue, "m1", replies=True, surface_id="77")
    assert (await post(queue, "m2", reply_to=reply)).session == begun.session


@pytest.mark.parametrize("reply", ["m1", "901", "77"])
async def test_a_reply_to_what_runs_joins_it_and_its_worker_is_told(queue: Queue, reply: str) -> None:
    begun = await post(queue, "m1", replies=True, surface_id="77")
    claim = await claimed(queue)
    await posted(queue, begun.session, "m1.p1", "901")
    rung: list[bytes] = []
    listener = queue.bus.listener(
        [queue.wake_up], lambda _channel, data: rung.append(data), _nothing, queue.prefix
    )
    listening = asyncio.create_task(listener.run())
    await _heard(queue, queue.wake_up)
    await post(queue, "m2", replies=True, reply_to=reply)
    came = await queue.step(claim.session, claim.epoch, 0, 1, [])
    assert [entry.id for entry in came] == ["m2"]
    async with asyncio.timeout(10):
        while not rung:
            await asyncio.sleep(0.01)
    assert json.loads(rung[0]) == {"look": begun.session}
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def _nothing() -> None:
    return None


async def _heard(queue: Queue, channel: str) -> None:
    async with asyncio.timeout(10):
        while not await queue.bus.listeners(channel):
            await asyncio.sleep(0.01)


async def test_a_reply_to_an_earlier_turn_of_a_running_thread_waits_its_turn(queue: Queue) -> None:
    await post(queue, "m1", replies=True)
    await ended(queue)
    await post(queue, "m2", reply_to="m1")
    claim = await claimed(queue)
    await post(queue, "m3", reply_to="m1")
    assert await queue.step(claim.session, claim.epoch, 0, 1, []) == []
    await queue.finish(claim.session, claim.epoch, closing())
    assert given(await claimed(queue)) == ["m3"]


async def test_a_reply_to_what_nobody_knows_begins_a_thread_that_is_to_look_for_it(queue: Queue) -> None:
    sent = await post(queue, "m1", reply_to="901")
    claim = await claimed(queue)
    assert (claim.session, claim.thread) == (sent.session, ThreadPlace(ROOM, 1, "901"))
    again = await post(queue, "m2", reply_to="901")
    assert again.session == sent.session, "another reply to the same goes after it"


async def test_a_reply_outside_of_channels_begins_a_conversation_without_a_number(queue: Queue) -> None:
    sent = await post(queue, "m1", channel=None, reply_to="gone")
    assert (await claimed(queue)).thread == ThreadPlace("", 0, "gone")
    assert sent.session.startswith("thread:")


async def test_a_reply_to_what_is_another_person_s_is_a_reply_to_what_nobody_knows(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    await posted(queue, begun.session, "m1.end", "901")
    foreign = await post(queue, "m2", user_id="eve", reply_to="901")
    assert foreign.session != begun.session
    assert (await post(queue, "m3", reply_to="901")).session == begun.session, "and hers stays what it was"


async def test_a_shared_thread_takes_the_replies_of_all_whose_gateways_sign(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True, shared=True)
    await posted(queue, begun.session, "m1.end", "901", shared=True)
    assert (await post(queue, "m2", user_id="bob", reply_to="901", shared=True)).session == begun.session
    assert (await post(queue, "m3", False, user_id="eve", reply_to="901")).session != begun.session


async def test_nobody_reports_posts_for_a_conversation_that_is_not_theirs(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    assert (await posted(queue, begun.session, "m1.end", "901", user_id="eve")).outcome == "foreign"
    assert (await posted(queue, "user:ada", "m1.end", "901")).outcome == "accepted"


async def test_what_is_not_signed_leads_no_signed_reply_astray(queue: Queue) -> None:
    theirs = await post(queue, "m1", False, replies=True, user_id="ada")
    data = {"type": "posted", "session_id": theirs.session, "output": "m1.end", "surface_ids": ["901"]}
    assert (await post(queue, "r", False, content=None, **data)).outcome == "accepted"
    assert (await post(queue, "m2", reply_to="901")).session != theirs.session
    assert (await post(queue, "m3", False, reply_to="901")).session == theirs.session


async def test_a_thread_can_be_named_by_its_number(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    assert (await post(queue, "m2", thread=1)).session == begun.session
    assert (await post(queue, "m3", thread=2)).outcome == "nowhere"
    assert (await post(queue, "m4", thread=1, user_id="eve")).outcome == "foreign"
    assert (await state(queue)).inbox == ["m1", "m2"]


async def test_a_number_is_free_a_day_after_the_last_word_and_the_lowest_is_given_next(queue: Queue) -> None:
    sent = [await post(queue, f"m{n}", replies=True) for n in (1, 2, 3)]
    for _ in sent:
        await ended(queue)
    await let_go(queue, 2)
    await let_go(queue, 1)
    assert await states(queue) == {3: "completed"}
    assert (await post(queue, "m4", thread=1)).outcome == "nowhere"
    await post(queue, "m5", replies=True)
    await post(
        queue, "m6", reply_to="m1"
    )  # the first thread goes on: it was #1, and gets the one that is free now
    assert (await post(queue, "m7", thread=2)).session == sent[0].session
    assert sorted(await states(queue)) == [1, 2, 3]


async def test_a_number_stays_with_what_runs_however_long_it_does(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    await let_go(queue, 1)
    assert await states(queue) == {1: "running"}
    await post(queue, "m2", replies=True)
    assert [one.session for one in await there(queue) if one.number == 1] == [begun.session]
    await let_go(queue, 1)
    await ended(queue)
    assert await states(queue) == {1: "completed", 2: "running"}, "and a day from its end"


async def test_states_are_those_of_the_turn(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    assert await states(queue) == {1: "running"}
    claim = await claimed(queue)
    await queue.bus.command("HSET", queue.keys.open_requests(begun.session), "abc", 1)
    assert await states(queue) == {1: "waiting for permission"}
    await queue.bus.command("DEL", queue.keys.open_requests(begun.session))
    await queue.finish(claim.session, claim.epoch, closing())
    assert await states(queue) == {1: "completed"}


async def test_a_kill_ends_what_runs_and_answers_what_waits(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    claim = await claimed(queue)
    await post(queue, "m2", session_id=begun.session)
    await post(queue, "k", type="stop", content=None, thread=1, kill=True)
    came = await queue.step(claim.session, claim.epoch, 0, 1, [])
    assert [entry.id for entry in came] == ["k", "m2"]
    assert await states(queue) == {1: "running"}, "until it has ended"
    await queue.finish(claim.session, claim.epoch, closing())
    assert await queue.claim("w1") == -1
    assert await states(queue) == {1: "killed"}
    await post(queue, "m3", thread=1)
    await ended(queue)
    assert await states(queue) == {1: "completed"}


async def test_a_kill_of_what_waits_alone_ends_it_before_it_begins(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    await post(queue, "m2", session_id=begun.session)
    await post(queue, "k", type="stop", content=None, thread=1, kill=True)
    assert sorted(given(await claimed(queue))) == ["k", "m1", "m2"]


async def test_nobody_kills_another_person_s_thread(queue: Queue) -> None:
    await post(queue, "m1", replies=True)
    kill: dict[str, Any] = {"type": "stop", "content": None, "thread": 1, "kill": True}
    assert (await post(queue, "k1", user_id="eve", **kill)).outcome == "foreign"
    assert (await post(queue, "k2", False, **kill)).outcome == "foreign"
    assert await states(queue) == {1: "running"}
    assert await states(queue, "eve") == await states(queue, "?ada") == {}


async def test_a_stop_or_an_amendment_of_what_nobody_knows_is_told_so_apart(queue: Queue) -> None:
    await post(queue, "m1", channel=None)
    for id, kind in (("s", "stop"), ("a", "amend")):
        await post(queue, id, type=kind, content="x", reply_to="gone")
    assert given(await claimed(queue)) == ["m1"]
    assert {(await claimed(queue)).session for _ in range(2)} == {"apart:s", "apart:a"}


async def test_a_plain_yes_in_a_thread_answers_the_request_of_that_thread(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    await claimed(queue)
    await queue.bus.command("HSET", queue.keys.open_requests(begun.session), "abc", 1)
    await posted(queue, begun.session, "m1.ask.abc", "901")
    await post(queue, "y", content="yes", reply_to="901")
    claim = await claimed(queue)
    message = claim.entries[0].message()
    assert claim.session == f"asks:{begun.session}"
    assert (message["session_id"], message["in_reply_to"]) == (begun.session, "m1.ask.abc")


async def test_a_message_moves_with_all_that_waits_behind_it(queue: Queue) -> None:
    old = await post(queue, "m0", session_id="s-old")
    await ended(queue)
    begun = await post(queue, "m1", reply_to="901", surface_id="77")
    await post(queue, "m2", reply_to="901")
    claim = await claimed(queue)
    value = {"user_id": "ada", "content": "x", "channel": ROOM, "reply_to": "901", "surface_id": "77"}
    way = threads.way(messages.human(value), True)
    assert await queue.move(claim.session, claim.epoch, old.session, "s:ada", "m0.end", b"", way)
    assert await queue.move(claim.session, claim.epoch, old.session, "s:ada", "m0.end", b"", way), (
        "it is done once"
    )
    assert await states(queue) == {}, "its number is free again"
    claims = [await ended(queue) for _ in range(2)]
    assert [(one.session, given(one)) for one in claims] == [(old.session, ["m1"]), (old.session, ["m2"])]
    assert claims[0].entries[0].message()["in_reply_to"] == "m0.end"
    assert (await state(queue)).inbox == []
    assert (await post(queue, "m3", reply_to="77")).session == old.session != begun.session


async def test_a_message_moves_into_nobody_else_s_conversation(queue: Queue) -> None:
    await post(queue, "m0", session_id="s-ann", user_id="ann")
    await ended(queue)
    await post(queue, "m1", reply_to="901")
    claim = await claimed(queue)
    assert not await queue.move(claim.session, claim.epoch, "s-ann", "s:ada", "", b"", "")
    await queue.finish(claim.session, claim.epoch, closing())
    assert (await state(queue)).inbox == []


async def test_a_worker_that_dies_after_the_number_was_given_leaves_number_and_session(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True)
    await claimed(queue, "w1")
    await lapse(queue, begun.session)
    claim = await claimed(queue, "w2")
    assert (claim.session, claim.thread, claim.tries) == (begun.session, ThreadPlace(ROOM, 1), 2)


async def test_plain_messages_find_their_threads_in_the_same_way(queue: Queue) -> None:
    k = await queue.join()

    async def hear(i: int, trusted: bool = True, **fields: Any) -> int:
        value = {"user_id": "ada", "content": f"words {i}", "channel": ROOM, "id": f"m{i}"} | fields
        value = {name: item for name, item in value.items() if item is not None}
        mail = routing.human(queue.names, messages.human(value), json.dumps(value).encode(), trusted)
        (taken,) = await queue.ingest(k, [(i, mail)], CHATTER_OUTPUT)
        return taken

    assert await hear(1, replies=True) == 1
    first = (await there(queue))[0].session
    assert (
        await hear(2, content=None, type="posted", session_id=first, output="m1.end", surface_ids=["901"])
        == 1
    )
    assert await hear(3, replies=True, reply_to="901") == 1
    assert await hear(4, replies=True) == 1
    assert await hear(5, thread=9) == 2
    assert await hear(6, content=None, type="stop", thread=2, kill=True) == 1
    assert await hear(7, id="m4", replies=True) == 0
    found = await state(queue)
    assert found.dead == [("m5", "refused: there is no such thread")]
    assert "no such thread" in found.said[0]
    assert sorted(given(await claimed(queue)) + given(await claimed(queue))) == ["m1", "m4", "m6"]
    assert await states(queue) == {1: "running", 2: "running"}


def test_the_first_words_of_a_thread_are_one_line_without_secrets() -> None:
    assert threads.first_words("Plan  a\nlogin page") == "Plan a login page"
    assert threads.first_words("key sk-ant-api03-" + "a" * 90).startswith("key [")
    assert len(threads.first_words("x" * 500)) == 60


@pytest.mark.parametrize(
    "fields",
    [
        {"replies": True},
        {"thread": 1},
        {"channel": "no channel", "replies": True},
        {"channel": ROOM, "thread": 0},
        {"channel": ROOM, "reply_to": "with a blank"},
        {"type": "stop", "session_id": "s", "kill": True, "turn_id": "t"},
        {"type": "posted", "channel": ROOM, "session_id": "s", "output": "o", "surface_ids": []},
        {"type": "posted", "channel": ROOM, "output": "o", "surface_ids": ["1"]},
    ],
)
def test_what_names_no_place_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(BadMessage):
        messages.human({"user_id": "ada", "content": "x"} | fields)


async def test_what_a_surface_posted_is_on_its_way_to_the_store(queue: Queue) -> None:
    begun = await post(queue, "m1", replies=True, surface_id="77")
    await posted(queue, begun.session, "m1.end", "901")
    entries = await queue.bus.command("XRANGE", f"{queue.prefix}archive", "-", "+")
    rows = [row for id, flat in entries for row in outbox._rows("chatter", id.decode(), flat)]
    kept = [
        (row.surface_id, row.message_id, row.session_id, row.signed) for row in rows if isinstance(row, Post)
    ]
    assert kept == [("77", "m1", begun.session, True), ("901", "m1.end", begun.session, True)]
