"""The summary of a long conversation: what it covers, how it is asked for, and how a turn is shown its past."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.bus.keys import DAY, HUMAN_INPUT, Names
from shared.bus.redis import RedisBus
from shared.conversation import summary
from shared.conversation.past import History, look_back
from shared.conversation.summary import FULL, RECENT, covered
from shared.conversation.window import messages as windowed
from shared.errors import StoreUnavailable
from shared.store.breaker import Breaker
from shared.store.records import Session, SnapshotRow
from shared.store.row import now
from shared.store.sqlite import SqliteStore
from shared.turns.queue import Claim, Completion, Mail, Queue
from shared.turns.records import Record, pack, unpack
from shared.turns.turn import Turn
from tests.conversation.ground import kept, turn, turns

HOUR_MS = 3_600_000


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [block["text"] for message in messages for block in message["content"]]


# -- what it covers ----------------------------------------------------------------------------------------


def test_twenty_messages_are_shown_as_they_are() -> None:
    assert covered(turns(*[2] * (FULL // 2)), 0) == []


def test_over_twenty_all_but_the_newest_fourteen_are_covered() -> None:
    window = turns(*[2] * 11)
    assert covered(window, 0) == window[: 22 - RECENT]


def test_the_next_one_is_due_when_the_window_has_grown_to_twenty_again() -> None:
    window = turns(*[2] * 14)
    assert covered(window[:22], 0)[-1]["seq"] == 8
    assert covered(window, 8) == []
    assert covered(turns(*[2] * 15), 8)[-1]["seq"] == 16


def test_it_waits_until_the_conversation_rests_while_there_is_room() -> None:
    window = turns(*[2] * 18)
    past = History(window[:-2], 34)
    assert past.unsummarised(window[-2:]) and not past.pressing(window[-2:])
    past = History(window, 36)
    assert past.pressing(turn("t18", 2, 37))
    told = History(window, 36, summary.record("They chose SQLite.", 1, 8))
    assert not told.pressing(turn("t18", 2, 37))


@pytest.mark.parametrize("sizes", [(2, 2, 18), (30, 2), (7, 9, 6), (5, 5, 5, 5, 5), (21,), (3, 40)])
def test_what_is_covered_ends_between_two_turns_and_never_holds_the_newest(sizes: tuple[int, ...]) -> None:
    window = turns(*sizes)
    told = covered(window, 0)
    left = window[len(told) :]
    assert left and left[-1]["turn"] == window[-1]["turn"]
    assert not told or told[-1]["turn"] != left[0]["turn"]
    assert len(left) <= RECENT or left[0]["turn"] == window[-1]["turn"]


def test_it_is_asked_for_without_tools_with_what_calls_came_to_and_the_one_before_it() -> None:
    window = turn("t0", 2)
    window[1]["content"] = [
        {"type": "tool_use", "id": "c1", "name": "list_tasks", "input": {"project_id": "shop"}},
    ]
    result = [{"type": "tool_result", "tool_use_id": "c1", "content": '{"tasks": ["swift-fox"]}'}]
    window += turn("t0", 1, 3)
    window[2]["content"] = result
    asked = summary.request("m", "chatter", "They chose SQLite.", window)
    told = asked.messages[0]["content"][1]["text"]
    assert (asked.max_tokens, asked.tools, len(asked.messages)) == (512, (), 1)
    assert told.splitlines()[0] == "(earlier) They chose SQLite."
    assert "list_tasks" in told and "swift-fox" in told


# -- how a turn is shown its past --------------------------------------------------------------------------


def test_a_short_conversation_is_shown_whole_and_nothing_is_said_about_it() -> None:
    window = turns(2, 4, at=5)
    assert texts(History(window, 6).messages(6)) == [f"t0.{n}" for n in range(2)] + [
        f"t1.{n}" for n in range(4)
    ]


def test_a_summary_stands_first_says_that_it_is_one_and_is_acknowledged() -> None:
    window = turns(*[2] * 11, at=5)
    shown = History(window, 22, summary.record("They chose SQLite.", 1, 8)).messages(6)
    assert [message["role"] for message in shown[:3]] == ["user", "assistant", "user"]
    assert texts(shown[:1]) == ["[CONVERSATION SUMMARY — earlier messages]\nThey chose SQLite."]
    assert texts(shown[2:]) == [block["text"] for item in window[8:] for block in item["content"]]


def test_what_neither_the_summary_nor_the_window_holds_is_said_with_how_to_find_it() -> None:
    window = turns(*[2] * 20, at=5)[30:]
    first = texts(History(window, 40).messages(6))[0]
    assert first.startswith("[30 earlier messages") and "memory_search" in first
    (told, between) = texts(History(window, 40, summary.record("Before.", 1, 8)).messages(6)[:1])
    assert "Before." in told and between.startswith("[22 earlier messages")


def test_turns_of_more_than_a_day_ago_are_not_shown_and_that_is_said() -> None:
    window = [*turns(2, 2, at=1), *turn("t2", 2, 5, at=DAY * 1000)]
    told = texts(History(window, 6).messages(DAY * 1000 + 2))
    assert told[0].startswith("[4 earlier messages")
    assert told[2:] == ["t2.0", "t2.1"]


# -- where it comes from -----------------------------------------------------------------------------------


@pytest.fixture
def queue(redis: RedisBus, names: Names) -> Queue:
    return Queue(redis, names, "chatter")


async def next_turn(queue: Queue, id: str, session: str = "s") -> Turn:
    await queue.post(Mail(id, session, HUMAN_INPUT, b"{}"))
    claim = await queue.claim("w")
    assert isinstance(claim, Claim)
    return Turn(queue, claim)


async def leave(queue: Queue, id: str, past: History, added: list[Record], session: str = "s") -> None:
    """A turn that adds to its conversation."""
    turn = await next_turn(queue, id, session)
    drop, window = past.leaves(added)
    seq = added[-1]["seq"] if added and "seq" in added[-1] else None
    await turn.finish(Completion(drop=drop, window=[pack(item) for item in window], seq=seq))


def numbers(past: History) -> list[int]:
    return [item["seq"] for item in past.window]


async def test_redis_holds_a_window_for_a_day(queue: Queue, store: SqliteStore) -> None:
    await leave(queue, "m1", History(), turns(2))
    life = await queue.bus.command("PTTL", f"{queue.prefix}window:s")
    assert DAY * 1000 - 60_000 < life <= DAY * 1000


async def test_a_conversation_that_was_read_from_the_store_is_whole_in_redis_again(
    queue: Queue, store: SqliteStore
) -> None:
    await kept(store, turns(*[2] * 24))
    first = await next_turn(queue, "m1")
    past = await look_back(store, first, HOUR_MS)
    assert numbers(past) == list(range(1, 49))
    drop, window = past.leaves(added := turn("new", 4, 49, at=first.claimed_at))
    await first.finish(Completion(drop=drop, window=[pack(item) for item in window], seq=added[-1]["seq"]))
    second = await next_turn(queue, "m2")
    assert [unpack(data)["seq"] for data in await _lines(queue)] == list(range(3, 53))
    assert numbers(await look_back(store, second, HOUR_MS)) == list(range(3, 53))


async def _lines(queue: Queue) -> list[bytes]:
    return list(await queue.bus.command("LRANGE", f"{queue.prefix}window:s", 0, -1))


async def test_after_a_rest_the_store_is_asked_and_until_then_redis_is_believed(
    queue: Queue, store: SqliteStore
) -> None:
    await leave(queue, "m1", History(), turns(2, at=1))
    await kept(store, turns(2))
    await store.insert(Session(key="s", clear_at=now() + timedelta(minutes=1)))
    waiting = await next_turn(queue, "m2")
    assert numbers(await look_back(store, waiting, rest_ms=waiting.claimed_at)) == [1, 2]
    rested = await look_back(store, waiting, rest_ms=HOUR_MS)
    assert (rested.window, rested.seq) == ([], 2)


async def test_what_is_still_on_its_way_to_the_store_is_taken_from_redis(
    queue: Queue, store: SqliteStore
) -> None:
    await kept(store, turns(2))
    await leave(queue, "m1", History(), turns(2, 2, at=1))
    assert numbers(await look_back(store, await next_turn(queue, "m2"), HOUR_MS)) == [1, 2, 3, 4]


async def test_with_the_store_down_redis_is_gone_on_with_however_long_the_rest(
    queue: Queue, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("the store does not answer")

    await leave(queue, "m1", History(), turns(2, at=1))
    monkeypatch.setattr(store, "select", down)
    assert numbers(await look_back(Breaker(store), await next_turn(queue, "m2"), HOUR_MS)) == [1, 2]


async def test_a_summary_is_found_in_redis_and_without_it_in_the_store(
    queue: Queue, store: SqliteStore
) -> None:
    window = turns(*[2] * 9, at=DAY * 10**6)
    await leave(queue, "m1", History(), window)
    await leave(queue, "m2", History(), [summary.record("From Redis.", 1, 8)], "summary:s")
    first = await next_turn(queue, "m3")
    assert (await look_back(store, first, HOUR_MS)).summary == summary.record("From Redis.", 1, 8)
    await queue.bus.command("DEL", f"{queue.prefix}window:s", f"{queue.prefix}window:summary:s")
    await kept(store, window)
    for text, last in (("Older.", 6), ("From the Store.", 8)):
        await store.insert(
            SnapshotRow(session_id="s", kind="summary", summary=text, first_seq=1, last_seq=last)
        )
    await first.finish(Completion())
    second = await next_turn(queue, "m4")
    assert (await look_back(store, second, HOUR_MS)).summary == summary.record("From the Store.", 1, 8)
    await store.insert(Session(key="s", clear_at=now() + timedelta(minutes=1)))
    assert (await look_back(store, second, HOUR_MS)).summary is None


async def test_what_a_person_says_in_a_session_that_is_called_like_one_is_no_summary(
    queue: Queue, store: SqliteStore
) -> None:
    await leave(queue, "m1", History(), turns(*[2] * 9, at=DAY * 10**6))
    await leave(queue, "m2", History(), turns(2), "summary:s")
    assert (await look_back(store, await next_turn(queue, "m3"), HOUR_MS)).summary is None


async def test_a_summary_of_what_was_before_a_conversation_was_cleared_is_not_shown(
    queue: Queue, store: SqliteStore
) -> None:
    made = summary.record("They chose SQLite.", 1, 8)
    await leave(queue, "m1", History(), [made], session="summary:s")
    window = turns(2, 2, 2, 2, 2, 2, 2, 2)
    await leave(queue, "m2", History(), [item | {"floor": 10} for item in window[10:]])
    past = await look_back(store, await next_turn(queue, "m3"), HOUR_MS)
    assert past.summary is None and past.floor == 10
    assert texts(past.messages(0)) == texts(windowed(window[10:]))


async def test_nor_one_that_the_store_has(queue: Queue, store: SqliteStore) -> None:
    await kept(store, turns(*[2] * 11))
    await store.insert(SnapshotRow(session_id="s", kind="summary", summary="Old.", first_seq=1, last_seq=8))
    await store.insert(Session(key="s", clear_seq=20))
    past = await look_back(store, await next_turn(queue, "m1"), HOUR_MS)
    assert past.summary is None and numbers(past) == [21, 22]
