"""The origin of a row: who made it, what was read for it; and what is made of rows that say nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from shared.conversation.past import Past
from shared.conversation.window import record
from shared.store import schema
from shared.store.origin import BEFORE, MADE, PERSON, Origin, mark, marked
from shared.store.records import Note, project_key
from shared.store.sqlite import SqliteStore
from tests.support.sqlite import opened


def note(**more: Any) -> Note:
    return Note(project_id=project_key("default"), slug="how", title="how", **more)


def test_an_origin_comes_back_as_it_was_kept() -> None:
    made = Origin("chatter", "ada", "s", "standard", "view")
    assert Origin.of(made.kept()) == made
    assert made.told == "made after reading view"


@pytest.mark.parametrize("kept", [None, {}, [], "chatter"])
def test_what_says_nothing_is_nobody_s_and_marked(kept: Any) -> None:
    assert Origin.of(kept) == Origin(foreign=BEFORE)


def test_a_change_has_a_new_maker_and_keeps_the_mark() -> None:
    before = Origin("chatter", foreign="view").kept()
    assert Origin(PERSON, "ada").over(before) == Origin(PERSON, "ada", foreign="view")
    assert Origin("chatter", foreign="grep").over(Origin(PERSON).kept()).foreign == "grep"
    assert Origin.of(before).trusted().told == ""


def test_rows_tell_the_first_mark_that_one_of_them_bears() -> None:
    clean = note(origin=Origin(PERSON, "ada").kept())
    assert marked([clean, None]) == {} and mark(clean) == ""
    assert marked([clean, note(origin=Origin("chatter", foreign="view").kept())]) == {MADE: "view"}
    assert marked([note()]) == {MADE: BEFORE}


def test_a_conversation_hands_on_the_mark_of_its_last_message() -> None:
    read, trusted = record("user", [], "t1", 1, 0, "view"), record("user", [], "t2", 2, 0)
    assert (Past().foreign, Past([read]).foreign, Past([read, trusted]).foreign) == ("", "view", "")
    of_before = {key: value for key, value in trusted.items() if key != "foreign"}
    assert Past([of_before]).foreign == BEFORE


async def test_a_home_of_the_release_before_opens_and_its_rows_are_marked(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.insert(note(origin=Origin(PERSON, "ada").kept()))
    with sqlite3.connect(tmp_path / "store.db") as db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            found = {name for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}')")}
            for column in found & {"origin", "allowed"}:
                db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute(f"PRAGMA user_version = {schema.VERSION - 1}")
    db.close()
    again = SqliteStore(tmp_path / "store.db")
    await again.open()
    [row] = await again.select(Note)
    await again.close()
    assert (row.title, row.origin, mark(row)) == ("how", {}, BEFORE)
