"""Rows are found by their words, on SQLite and on Supabase alike; the index follows each row."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.conversation import prompt
from shared.errors import ConfigurationError, Conflict
from shared.store import fulltext, schema
from shared.store.base import Store
from shared.store.records import (
    TABLES,
    ConversationMessage,
    Log,
    Memory,
    Note,
    Project,
    ProjectProfile,
    Row,
    Task,
    TaskResult,
    new_id,
    now,
    project_key,
)
from shared.store.sqlite import SqliteStore
from tests.support.postgres import Postgres
from tests.support.supabase_lite import ROOT, SupabaseLite

OWN = project_key("default")
HOSTILE = (
    '"', "'", "*", "boat*", "NEAR(boat tide)", "boat AND tide", "title:boat", "body : boat", "boat OR", "(", "^boat",
    "-boat", "boat -tide", "!boat", "boat & tide", "boat:*", "boat <-> tide", "\\", "'; drop table notes; --", "{boat}",
    "boat + tide", "a\x00b", "%boat%", "🗝️", "\ud83d", "scope : 6e6f746573", '"boat', "boat''",
)  # fmt: skip


def note(title: str, body: str = "", **more: Any) -> Note:
    return Note(project_id=OWN, slug=f"n{new_id().hex}", title=title, body=body, **more)


def said(text: str, session: str = "s", **more: Any) -> ConversationMessage:
    block = {"type": "text", "text": text}
    return ConversationMessage(
        session_id=session,
        seq=new_id().int % 2**60,
        role="user",
        content=[block, *more.pop("beside", [])],
        **more,
    )


async def titles(store: Store, words: str, **more: Any) -> list[str]:
    return [row.title for row, _ in (await store.search(Note, words, **more)).rows]


@pytest.mark.parametrize(
    ("stands", "sought"),
    [
        ("The payments are cached.", "payment caching"),
        ("RUNNING boats", "boat runs"),
        ("policies", "policy"),
        ("see notes/cooking.md", "cooking"),
        ("https://example.com/some/path", "path"),
        ("fast_lane and slow-lane", "lane"),
        ("version 3.11 of it", "3.11"),
        ("ключ", "ключ"),
        ("鍵", "鍵"),
        ("naïve café", "café"),
    ],
)  # fmt: skip
async def test_a_word_is_found_in_any_of_its_forms(store: Store, stands: str, sought: str) -> None:
    await store.insert(note("A", stands))
    await store.insert(note("B", "something else"))
    assert await titles(store, sought) == ["A"]


async def test_what_fits_best_comes_first_and_scores_fall(store: Store) -> None:
    filler = [note(f"Filler {number}", "rope and sail") for number in range(20)]
    long = note("Long", "boat " + "rope and sail " * 100)
    await store.upsert([long, note("Both", "a blue boat"), note("Boat", "a title says most"), *filler])
    found = await store.search(Note, "blue boats")
    scores = [score for _, score in found.rows]
    assert [row.title for row, _ in found.rows] == ["Both", "Boat", "Long"]
    assert scores == sorted(scores, reverse=True) and min(scores) > 0
    assert found.total == 3


async def test_so_many_are_given_and_all_are_counted(store: Store) -> None:
    await store.upsert([note(f"Boat {number}") for number in range(30)])
    found = await store.search(Note, "boat", limit=7)
    assert (len(found.rows), found.total) == (7, 30)
    assert len((await store.search(Note, "boat", limit=10**6)).rows) == 30


async def test_conditions_hold_for_what_is_found(store: Store) -> None:
    other = Project(slug="other", name="Other")
    await store.insert(other)
    await store.insert(note("Ours", "boat"))
    await store.insert(Note(project_id=other.id, slug="n", title="Theirs", body="boat"))
    assert await titles(store, "boat", where={"project_id": OWN}) == ["Ours"]
    assert await titles(store, "boat", where={"project_id": ("in", [other.id])}) == ["Theirs"]
    assert await titles(store, "boat", where={"project_id": ("in", [])}) == []
    assert await titles(store, "boat", where={"project_id": ("ne", OWN), "title": "Theirs"}) == ["Theirs"]
    assert await titles(store, "boat", where={"created_at": ("gt", now() + timedelta(days=1))}) == []
    await store.upsert(
        [
            Memory(kind="fact", body="a boat", valid_to=now()),
            Memory(kind="fact", body="the boat", archived=True),
            Memory(kind="fact", body="boat!", scope="global"),
        ]
    )
    valid = {"archived": False, "valid_to": None}
    assert [row.body for row, _ in (await store.search(Memory, "boat", valid)).rows] == ["boat!"]
    gone = await store.search(Memory, "boat", {"valid_to": ("ne", None)})
    assert [row.body for row, _ in gone.rows] == ["a boat"]
    with pytest.raises(ValueError, match="no column"):
        await store.search(Memory, "boat", {"nothing": 1})


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_sign_in_what_is_sought_has_a_meaning(store: Store, text: str) -> None:
    await store.insert(note("A boat", "in the harbour"))
    found = await titles(store, text)
    assert found == (["A boat"] if "boat" in text else [])


async def test_stop_words_and_nothing_find_nothing(store: Store) -> None:
    await store.insert(note("The and of", "it is what it is"))
    for text in ("", " ", "the and of", "***"):
        assert (await store.search(Note, text)).rows == []
    await store.insert(note("Last", "zebra"))
    many = " ".join(f"word{number}" for number in range(5000))
    assert await titles(store, f"zebra {many}") == ["Last"]
    assert await titles(store, f"{many} zebra") == [], "so many words are looked for, and no more"


@pytest.mark.parametrize(
    "row",
    [
        note("x", "boat"),
        ProjectProfile(project_id=OWN, body="boat"),
        Memory(kind="fact", body="x", context="boat"),
        Memory(kind="fact", subject="boat", body="x"),
        Task(slug="a", project_id=OWN, title="x", description="boat"),
        TaskResult(task_id=new_id(), summary="x", error="boat"),
        said("boat"),
        said("x", user_name="boat"),
    ],
    ids=lambda row: row.table,
)
async def test_what_is_written_changed_and_deleted_is_so_for_the_search(store: Store, row: Row) -> None:
    kind = type(row)

    async def found(words: str) -> bool:
        return (await store.search(kind, words)).total == 1

    await store.insert(row)
    assert await found("boats")
    column = next(name for name in kind.searched[::-1] if name)
    value = [{"type": "text", "text": "a train"}] if column == "content" else "a train"
    await store.upsert(
        [row.model_copy(update={name: "" for name in kind.searched if name} | {column: value})]
    )
    assert await found("trains") and not await found("boat")
    await store.update(kind, {column: row.model_dump()[column]}, {"id": row.id})
    assert not await found("train")
    await store.upsert([row])
    assert await found("boat")
    await store.delete(kind, {"id": row.id})
    assert not await found("boat")
    await store.insert(row)
    assert await found("boat")


async def test_whoever_comes_after_a_deleted_row_is_not_found_by_its_words(store: Store) -> None:
    await store.insert(note("boat"))
    await store.delete(Note, {"title": "boat"})
    await store.insert(note("train"))
    assert (await titles(store, "boat"), await titles(store, "train")) == ([], ["train"])


async def test_what_goes_with_its_project_is_not_found_any_more(store: Store) -> None:
    other = Project(slug="other", name="Other")
    await store.insert(other)
    await store.insert(Note(project_id=other.id, slug="n", title="boat"))
    await store.delete(Project, {"id": other.id})
    await store.insert(note("Ours", "boat"))
    assert await titles(store, "boat") == ["Ours"]


async def test_what_was_not_written_is_not_found(store: Store) -> None:
    first = note("boat")
    await store.insert(first)
    with pytest.raises(Conflict):
        await store.insert(first.model_copy(update={"title": "train", "slug": "m"}))
    assert await titles(store, "train") == []
    await store.insert(Task(slug="a", project_id=OWN, title="plane"), beside=[note("plane")])
    assert await titles(store, "plane") == ["plane"]
    assert (await store.search(Task, "plane")).total == 1


async def test_of_a_conversation_the_words_that_were_said_are_searched(store: Store) -> None:
    beside = [
        {"type": "text", "text": f"{fulltext.SITUATION} 2026-11-22 10:00 UTC\nACTIVE PROJECT: `harbour`.]"},
        {"type": "tool_result", "content": "the harbour"},
    ]
    assert prompt.is_situation(str(beside[0]["text"]))
    await store.upsert([said("a boat", beside=beside), said("another boat", "t"), said("")])
    found = await store.search(ConversationMessage, "boat", {"session_id": "s"})
    assert [row.content[0]["text"] for row, _ in found.rows] == ["a boat"]
    assert (await store.search(ConversationMessage, "harbour")).rows == []


async def test_a_very_long_text_is_written_and_found_by_its_beginning(store: Store) -> None:
    words = " ".join(f"w{number}x" for number in range(130_000))
    await store.insert(note("Long", f"boat {words[:950_000]}"))
    await store.insert(note("Word", "y" * 900_000))
    assert await titles(store, "boat w77x") == ["Long"]


async def test_rows_of_several_classes_have_scores_that_can_be_compared(store: Store) -> None:
    """A note that holds both words is better than a memory that holds one, however rare that is in its table."""
    await store.upsert([note(f"N{number}", "rope") for number in range(20)])
    await store.upsert([note("Both", "blue boat"), Memory(kind="fact", body="the boat")])
    [(_, both)] = (await store.search(Note, "blue boat")).rows
    [(_, one)] = (await store.search(Memory, "blue boat")).rows
    assert both > one > 0


async def test_only_rows_with_words_are_searched(store: Store) -> None:
    with pytest.raises(ValueError, match="not searched"):
        await store.search(Log, "boat")


async def test_a_file_of_an_older_release_is_searched_as_soon_as_it_is_opened(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    rows: list[Row] = [note(f"Boat {number}") for number in range(5)]
    await store.upsert([*rows, said("a boat")])
    await store.close()
    with closing(sqlite3.connect(store.path)) as db:
        triggers = [name for (name,) in db.execute("select name from sqlite_master where type = 'trigger'")]
        db.executescript(
            "".join(f"drop trigger {name};" for name in triggers)
            + "drop table search_words; drop table search_rows;"
            + f"delete from notes where title = 'Boat 3'; pragma user_version = {schema.VERSION - 1}"
        )
    await store.open()
    assert sorted(await titles(store, "boats")) == ["Boat 0", "Boat 1", "Boat 2", "Boat 4"]
    assert (await store.search(ConversationMessage, "boats")).total == 1
    await store.update(Note, {"title": "Train"}, {"title": "Boat 0"})
    await store.insert(note("A boat"))
    assert sorted(await titles(store, "boat")) == ["A boat", "Boat 1", "Boat 2", "Boat 4"]
    await store.close()


async def test_an_sqlite_that_has_no_full_text_is_named_and_the_file_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = ["CREATE VIRTUAL TABLE search_words USING absent"]
    monkeypatch.setattr(fulltext, "statements", lambda: iter(missing))
    store = SqliteStore(tmp_path / "store.db")
    with pytest.raises(ConfigurationError, match=r"no such module: absent.*FTS5"):
        await store.open()
    with closing(sqlite3.connect(store.path)) as db:
        assert db.execute("select count(*) from sqlite_master").fetchone() == (0,)


def test_the_migration_searches_the_rows_that_were_there(running: SupabaseLite, postgres: Postgres) -> None:
    """All migrations but those of the search into a database of its own, a row, then these."""
    postgres.query("create database older")
    files = sorted((ROOT / "supabase" / "migrations").iterdir())
    before = [path for path in files if "_search" not in path.name]
    for path in before:
        postgres.query(path.read_text("utf-8"), "older")
    postgres.query(
        "insert into notes (id, project_id, slug, title, body)"
        f" values (gen_random_uuid(), '{OWN}', 'a', 'Old', 'many boats')",
        "older",
    )
    for path in files:
        if path not in before:
            postgres.query(path.read_text("utf-8"), "older")
    found = postgres.query(
        """select search_found('notes', '["boat"]', '[]', 5) -> 'row' ->> 'title'""", "older"
    )
    postgres.query("drop database older")
    assert found == [["Old"]]


def test_the_words_of_all_rows_are_closed_to_everybody_else(
    running: SupabaseLite, postgres: Postgres
) -> None:
    sql = (
        "select relrowsecurity, (select count(*) from pg_policies where tablename = 'search_words'),"
        " has_function_privilege('anon', 'public.search_found(text,text,text,integer)', 'execute')"
        " from pg_class where oid = 'public.search_words'::regclass"
    )
    assert postgres.query(sql) == [["t", "0", "f"]]


def test_both_search_the_same_columns(running: SupabaseLite, postgres: Postgres) -> None:
    sql = (
        "select c.relname, encode(t.tgargs, 'escape') from pg_trigger t join pg_class c on c.oid = t.tgrelid"
        " where t.tgname = 'search_added'"
    )
    there = {table: tuple(named.split("\\000")[:-1]) for table, named in postgres.query(sql)}
    assert there == {kind.table: kind.searched for kind in TABLES if kind.searched}


async def test_a_rare_word_weighs_more_than_one_that_many_rows_hold(store: Store) -> None:
    await store.upsert(
        [note("first", "the tide is high at the landing"), *[note(f"{n}", "a boat") for n in range(30)]]
    )
    found = await store.search(Note, "boat tide", {"project_id": OWN}, 3)
    assert found.rows[0][0].title == "first"


def test_words_that_stand_everywhere_are_left_out_beside_rare_ones_and_never_all_of_them() -> None:
    assert fulltext.rare(["tide", "said", "boat"], [50, fulltext.BUDGET, 3]) == ["tide", "boat"]
    assert fulltext.rare(["said", "came"], [fulltext.BUDGET + 2, fulltext.BUDGET + 1]) == ["came"]
    assert fulltext.rare(["said", "zebra"], [fulltext.BUDGET + 1, 0]) == ["said"]
    assert fulltext.rare(["zebra", "yak"], [0, 0]) == ["zebra"]


async def test_a_wide_scope_finds_the_same_with_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "wide.db")
    await store.open()
    await store.upsert([Project(slug="default", name="Default", id=OWN)])
    await store.upsert([note("tide", "the boat"), note("boat"), Log(agent="a", message="boat")])
    other = Memory(kind="fact", body="a boat at high tide", project_id=OWN)
    await store.upsert([other])
    narrow = [await store.search(kind, "boat tide", {"project_id": OWN}) for kind in (Note, Memory)]
    monkeypatch.setattr(fulltext, "WIDE", 1)
    wide = [await store.search(kind, "boat tide", {"project_id": OWN}) for kind in (Note, Memory)]
    assert wide == narrow and [found.total for found in wide] == [2, 1]
    await store.close()
