"""The origin of a row: who made it, what was read for it; and what is made of rows that say nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from shared.conversation.past import History
from shared.conversation.window import record
from shared.store import schema
from shared.store.base import Store
from shared.store.origin import BEFORE, MADE, PERSON, Origin, mark, marked
from shared.store.records import Audit, CallDecision, Note, Repo, Row, Workspace, project_key
from shared.store.sqlite import SqliteStore
from shared.store.supabase import SupabaseStore
from tests.support.postgres import Postgres
from tests.support.sqlite import opened
from tests.support.supabase_lite import ROOT, SECRET, SupabaseLite

MIGRATION = ROOT / "supabase" / "migrations" / "20261123010000_places.sql"


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
    assert (History().foreign, History([read]).foreign, History([read, trusted]).foreign) == ("", "view", "")
    of_before = {key: value for key, value in trusted.items() if key != "foreign"}
    assert History([of_before]).foreign == BEFORE


def _aged(file: Path) -> None:
    """Make of a file what a release left that knew of no origin."""
    with sqlite3.connect(file) as db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            found = {name for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}')")}
            for column in found & {"origin", "allowed"}:
                db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 4")
    db.close()


async def test_a_home_of_the_release_before_opens_and_its_rows_are_marked(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.insert(note(origin=Origin(PERSON, "ada").kept()))
    _aged(tmp_path / "store.db")
    again = SqliteStore(tmp_path / "store.db")
    await again.open()
    [row] = await again.select(Note)
    await again.close()
    assert (row.title, row.origin, mark(row)) == ("how", {}, BEFORE)


PROJECT = project_key("default")
URL = "https://example.org/shop.git"


def before() -> tuple[list[Row], set[str]]:
    """Places that were added before they had an origin, with what the audit log has; the names of a person's."""

    def repo(name: str, **more: Any) -> Repo:
        return Repo(project_id=PROJECT, name=name, **more)

    def space(name: str, path: str) -> Workspace:
        return Workspace(project_id=PROJECT, name=name, path=path, source="link")

    def check(agent: str, action: str, decision: CallDecision = "allow") -> Audit:
        detail = {"by": "command"} if agent == PERSON else {}  # the worker who runs a command is its agent
        return Audit(agent="chatter", action=action, decision=decision, detail=detail)

    places: list[Row] = [
        repo("linked", path="/srv/linked"),
        repo("called", path="/srv/x"),
        repo("cloned", url=URL),
        repo("unknown", path="/srv/unknown"),
        repo("longer", path="/srv/linked/longer"),
        repo("agent", path="/srv/agent"),
        repo("both", path="/srv/both"),
        repo("refused", path="/srv/refused"),
        space("stand", "/srv/stand"),
        space("other", "/srv/other"),
    ]
    checks: list[Row] = [
        check(PERSON, "tool:add_repo:link /srv/linked"),
        check(PERSON, "tool:add_repo:link /srv/x as called"),
        check(PERSON, f"tool:add_repo:clone {URL}", "ask_approved"),
        check("chatter", "tool:add_repo:link /srv/agent", "ask_approved"),
        check("chatter", "tool:add_repo:link /srv/both"),
        check(PERSON, "tool:add_repo:link /srv/both"),
        check(PERSON, "tool:add_repo:link /srv/refused", "deny"),
        check(PERSON, "tool:add_workspace:default link /srv/stand"),
        check(PERSON, "tool:add_workspace:shop link /srv/other"),
    ]
    return [*places, *checks], {"linked", "called", "cloned", "stand"}


async def _unmarked(store: Store) -> set[str]:
    found: list[Repo | Workspace] = [*await store.select(Repo), *await store.select(Workspace)]
    assert len(found) == 10 and {mark(row) for row in found} == {"", BEFORE}
    assert {Origin.of(row.origin).by for row in found if not mark(row)} == {PERSON}
    return {row.name for row in found if not mark(row)}


async def test_older_places_are_marked_but_those_that_a_person_is_known_to_have_added(tmp_path: Path) -> None:
    rows, theirs = before()
    async with opened(tmp_path) as store:
        await store.upsert(rows)
    _aged(tmp_path / "store.db")
    again = SqliteStore(tmp_path / "store.db")
    await again.open()
    found = await _unmarked(again)
    await again.close()
    assert found == theirs


async def test_the_migration_of_supabase_says_the_same(endpoint: SupabaseLite, postgres: Postgres) -> None:
    text = MIGRATION.read_text("utf-8")
    for statement in schema.makers():
        assert f"{statement};" in text
    rows, theirs = before()
    store = SupabaseStore(endpoint.url, SECRET, limit=60.0)
    await store.open()
    await store.upsert(rows)
    ages = "alter table repos drop column origin; alter table workspaces drop column origin;"
    begun = f'{{"version": {schema.VERSION}}}'  # the migration says the version of its time
    ends = f"update settings set value = '{begun}' where scope = '@schema' and key = 'version';"
    postgres.query(f"begin; {ages}{text}{ends} commit;")
    found = await _unmarked(store)
    await store.close()
    assert found == theirs
