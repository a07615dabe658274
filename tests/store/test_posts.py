"""What a reply means, as the Store knows it; and what a turn leaves on the row of its conversation."""

from __future__ import annotations

from datetime import timedelta

from shared.conversation import sessions, threads
from shared.store.base import Store
from shared.store.records import Message, Post, Session
from shared.store.row import now

ROOM = "discord:7"


def post(id: str, session: str, signed: bool = True, channel: str = ROOM) -> Post:
    return Post(channel=channel, surface_id=id, session_id=session, message_id=f"{id}.end", signed=signed)


def said(id: str, session: str, type: str = "message") -> Message:
    return Message(message_id=id, from_agent="user", to_agent="chatter", type=type, session_id=session)


async def test_a_post_is_found_in_its_channel_by_whoever_signs_as_its_reporter_did(store: Store) -> None:
    await store.upsert([post("9", "a"), post("9", "b", channel="discord:8"), post("7", "c", signed=False)])
    assert await threads.replied(store, ROOM, True, "9") == ("a", "9.end")
    assert await threads.replied(store, "discord:8", True, "9") == ("b", "9.end")
    assert await threads.replied(store, ROOM, False, "7") == ("c", "7.end")
    for channel, signed, id in ((ROOM, False, "9"), (ROOM, True, "7"), ("", True, "9"), (ROOM, True, "6")):
        assert await threads.replied(store, channel, signed, id) is None


async def test_a_message_or_an_output_is_found_by_its_id_where_it_ended_up(store: Store) -> None:
    await store.upsert(
        [said("m1", "a"), said("m1.end", "a", "complete"), said("y", "asks:a"), said("d", "a", "dead")]
    )
    assert await threads.replied(store, ROOM, True, "m1") == ("a", "m1")
    assert await threads.replied(store, "", False, "m1.end") == ("a", "m1.end")
    assert await threads.replied(store, "", True, "y") == ("a", "y")
    assert await threads.replied(store, "", True, "d") is None
    await threads.move(store, [threads.moved(["m1"], "a", "b").values])
    assert await threads.replied(store, "", True, "m1") == ("b", "m1")


async def test_a_turn_leaves_channel_and_number_on_the_row_of_its_thread(store: Store) -> None:
    turn = {"key": "thread:1", "user_id": "ada", "agent": "chatter", "channel": ROOM}
    await sessions.touch(store, [turn | {"number": 1, "title": "Plan it"}])
    await sessions.touch(store, [turn | {"number": 3}])  # it got another one when it went on
    [row] = await store.select(Session, {"key": "thread:1"})
    assert (row.channel, row.number, row.title) == (ROOM, 3, "Plan it")


async def test_a_word_in_any_thread_of_a_channel_counts_for_all_of_them_and_a_rest_for_none(
    store: Store,
) -> None:
    ago = now() - timedelta(hours=5)
    rows = [
        Session(key=key, user_id=user, channel=channel, talked=True, last_active_at=ago)
        for key, user, channel in (("t1", "ada", ROOM), ("t2", "bob", ROOM), ("t3", "bob", "discord:8"))
    ]
    await store.upsert(rows)
    turn = {"user_id": "bob", "agent": "chatter"}
    await sessions.touch(store, [turn | {"key": "t3", "talked": False, "clear_seq": 4, "rested": True}])
    [rested] = await store.select(Session, {"key": "t3"})
    assert (rested.last_active_at, rested.talked, rested.clear_seq) == (ago, False, 4)
    assert await sessions.last_word(store, rows[1]) == ago
    await sessions.touch(store, [turn | {"key": "t2", "channel": ROOM}])
    assert await sessions.last_word(store, rows[0]) > ago


async def test_threads_are_called_by_the_titles_that_people_and_models_gave(store: Store) -> None:
    from shared.turns.threads import Thread

    await store.upsert(
        [Session(key="a", title="The login", titled="model"), Session(key="b", title="Plan", titled="words")]
    )
    there = [
        Thread(ROOM, n, key, "running", "s:ada", f"words of {key}", now()) for n, key in enumerate("abc", 1)
    ]
    assert [one["title"] for one in await threads.called(store, there)] == [
        "The login",
        "words of b",
        "words of c",
    ]
