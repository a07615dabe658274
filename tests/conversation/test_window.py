"""The window of a conversation: the newest fifty messages, cut only between turns, and the same from the Store."""

from __future__ import annotations

from typing import Any

import pytest

from shared.conversation import sessions
from shared.conversation.window import KEEP, floor, messages, recall, record, surplus
from shared.store.records import Session, project_key
from shared.store.row import now
from shared.store.sqlite import SqliteStore
from shared.turns.records import Record
from tests.conversation.ground import kept, turn, turns


def test_a_window_with_room_loses_nothing() -> None:
    assert surplus(turns(10, 38), 2) == 0


def test_whole_turns_go_until_at_most_fifty_are_left() -> None:
    assert surplus(turns(10, 38), 3) == 10
    assert surplus(turns(10, 10, 10, 10, 10), 20) == 20


@pytest.mark.parametrize("added", range(0, 60, 7))
def test_a_cut_is_always_between_two_turns(added: int) -> None:
    window = turns(7, 2, 13, 4, 9, 15)
    drop = surplus(window, added)
    assert (
        drop == len(window)
        or window[drop - 1 : drop] == []
        or window[drop - 1]["turn"] != window[drop]["turn"]
    )
    assert len(window) - drop + added <= KEEP or drop == len(window)


def test_a_turn_that_is_larger_than_the_window_goes_whole() -> None:
    assert surplus(turns(80), 2) == 80


def test_an_empty_window_has_nothing_to_lose() -> None:
    assert surplus([], 100) == 0


def test_messages_have_the_providers_form_and_no_more() -> None:
    told = record("user", [{"type": "text", "text": "Hi"}], "t", 1, 0, user_id="ann", source=None)
    assert messages([told]) == [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    assert told["user_id"] == "ann" and "source" not in told


# -- from the Store ----------------------------------------------------------------------------------------


def told(window: list[Record]) -> list[tuple[Any, ...]]:
    return [(item["role"], item["content"], item["turn"], item["seq"]) for item in window]


async def test_a_new_session_begins_empty(store: SqliteStore) -> None:
    assert await recall(store, "nobody") == ([], 0)


async def test_a_short_conversation_is_recalled_whole_and_in_order(store: SqliteStore) -> None:
    window = turns(2, 4, 2)
    await kept(store, window)
    await kept(store, turns(2), session="another")
    found, last = await recall(store, "s")
    assert (told(found), last) == (told(window), 8)


@pytest.mark.parametrize("size", [2, 3, 7, 10])
async def test_of_a_long_one_the_newest_whole_turns_are_recalled(store: SqliteStore, size: int) -> None:
    window = turns(*[size] * (240 // size))
    await kept(store, window)
    found, last = await recall(store, "s")
    assert last == window[-1]["seq"]
    assert KEEP - size < len(found) <= KEEP
    assert told(found) == told(window[-len(found) :])
    assert len(found) % size == 0


async def test_what_was_cleared_stays_away_and_the_numbers_go_on(store: SqliteStore) -> None:
    await kept(store, turns(2, 2))
    await store.insert(Session(key="s", clear_at=now()))
    assert await recall(store, "s") == ([], 4)
    later = turn("t9", 2, 5)
    await kept(store, later, ago=-1)
    found, last = await recall(store, "s")
    assert (told(found), last) == (told(later), 6)


async def test_a_session_has_one_row_which_each_turn_touches(store: SqliteStore) -> None:
    await sessions.touch(store, [{"key": "s", "user_id": "ann"}])
    (first,) = await store.select(Session, {"key": "s"})
    await store.update(Session, {"title": "A shed"}, {"key": "s"})
    await sessions.touch(store, [{"key": "s", "user_id": "ann"}])
    (second,) = await store.select(Session, {"key": "s"})
    assert (second.id, second.title, second.user_id) == (first.id, "A shed", "ann")
    assert second.last_active_at >= first.last_active_at


async def test_a_session_is_called_by_its_first_words_and_knows_what_its_newest_turn_worked_on(
    store: SqliteStore,
) -> None:
    shed, pond = project_key("shed"), project_key("pond")
    turns = [{"key": "s", "title": "A shed", "project_id": str(shed)}, {"key": "s", "title": "No, a pond"}]
    await sessions.touch(store, turns)
    (first,) = await store.select(Session)
    assert (first.title, first.project_id) == ("A shed", shed)
    await sessions.touch(store, [{"key": "s", "title": "More", "project_id": str(pond)}, {"key": "t"}])
    await sessions.touch(store, [{"key": "s", "title": "Thanks"}])
    rows = {row.key: (row.title, row.project_id) for row in await store.select(Session)}
    assert rows == {"s": ("A shed", pond), "t": ("", None)}


def test_a_title_is_one_short_line() -> None:
    assert sessions.title("  Plan a\n shed ") == "Plan a shed"
    long = sessions.title("word " * 30)
    assert len(long) <= 60 and long.endswith("word…")


async def test_many_sessions_are_touched_at_once(store: SqliteStore) -> None:
    """More than one query takes, some known, some new, some twice."""
    await store.insert(Session(key="s1", title="A shed"))
    await sessions.touch(store, [{"key": f"s{n % 250}", "user_id": "ann"} for n in range(300)])
    rows = await store.select(Session)
    assert sorted(row.key for row in rows) == sorted(f"s{n}" for n in range(250))
    assert [row.title for row in rows if row.key == "s1"] == ["A shed"]


@pytest.mark.parametrize("other", ["s1", "s2"])
async def test_a_session_that_another_made_in_the_same_moment_stays_as_a_person_set_it(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    update = store.update

    async def late(*given: Any) -> list[Session]:
        found = await update(*given)
        monkeypatch.setattr(store, "update", update)
        await sessions.touch(store, [{"key": other, "user_id": "ann"}])
        await store.update(Session, {"title": "A shed"}, {"key": other})
        return found

    monkeypatch.setattr(store, "update", late)
    await sessions.touch(store, [{"key": key, "user_id": "ann"} for key in ("s1", "s2", "s3")])
    rows = {row.key: row.title for row in await store.select(Session)}
    assert rows == {"s1": "", "s2": "", "s3": ""} | {other: "A shed"}


async def test_a_conversation_that_was_cleared_is_recalled_from_behind_the_marker(store: SqliteStore) -> None:
    await kept(store, turns(2, 4, 2))
    await store.insert(Session(key="s", clear_seq=6))
    found, last = await recall(store, "s")
    assert [item["seq"] for item in found] == [7, 8] and last == 8
    assert floor(found) == 6


async def test_what_neither_side_said_is_a_note_for_the_model(store: SqliteStore) -> None:
    await kept(store, [record("system", [{"type": "text", "text": "Be kind"}], "t", 1, 0)])
    (found,), _last = await recall(store, "s")
    assert found["role"] == "user" and found["content"][0]["text"] == "[system]"
