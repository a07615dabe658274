"""Record classes, SQLite and Postgres have one schema."""

from __future__ import annotations

import json
import sqlite3
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from shared.store import schema
from shared.store.records import TABLES, Row, project_key
from shared.store.sqlite import SqliteStore
from tests.support.postgres import Postgres
from tests.support.supabase_lite import PUBLISHABLE, SupabaseLite

_POSTGRES = {
    "uuid": "uuid",
    "time": "timestamp with time zone",
    "text": "text",
    "whole": "bigint",
    "real": "double precision",
    "flag": "boolean",
    "json": "jsonb",
}
_LOGS = {
    "messages", "posts", "conversation_messages", "sessions", "snapshots", "turns", "turn_steps", "task_events",
    "task_results", "approvals", "audit_log", "hook_runs", "token_usage", "logs", "memories",
}  # fmt: skip

every_table = pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.table)


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await store.close()
    return store.path


def _ask(file: Path, sql: str, *values: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(file)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


@every_table
def test_postgres_has_the_columns_of_the_record(
    kind: type[Row], running: SupabaseLite, postgres: Postgres
) -> None:
    found = postgres.query(
        "select column_name, data_type, is_nullable, column_default is not null"
        f" from information_schema.columns where table_schema = 'public' and table_name = '{kind.table}'"
        " order by ordinal_position"
    )
    expected = [
        [c.name, _POSTGRES[c.kind], "YES" if c.nullable else "NO"] for c in schema.columns(kind).values()
    ]
    assert [row[:3] for row in found] == expected
    # An older program sends rows without the columns that it does not know.
    optional = {name for name, info in kind.model_fields.items() if not info.is_required()}
    assert {row[0] for row in found if row[2] == "YES" or row[3] == "t"} == optional


@every_table
async def test_sqlite_has_the_columns_of_the_record(kind: type[Row], file: Path) -> None:
    found = _ask(file, 'select name, type, "notnull" from pragma_table_info(?)', kind.table)
    types = {"whole": "INTEGER", "flag": "INTEGER", "real": "REAL"}
    assert found == [
        (column.name, types.get(column.kind, "TEXT"), int(not column.nullable))
        for column in schema.columns(kind).values()
    ]


@every_table
async def test_both_have_the_same_indexes_and_keys(
    kind: type[Row], file: Path, running: SupabaseLite, postgres: Postgres
) -> None:
    found = postgres.query(
        "select i.indisunique, string_agg(a.attname, ',' order by k.n) from pg_index i"
        " cross join unnest(i.indkey) with ordinality k(attnum, n)"
        " join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum"
        f" where i.indrelid = 'public.{kind.table}'::regclass group by i.indexrelid, i.indisunique"
    )
    there = {(flag == "t", tuple(names.split(","))) for flag, names in found}
    here = {
        (bool(flag), tuple(name for (name,) in _ask(file, "select name from pragma_index_info(?)", index)))
        for index, flag in _ask(file, 'select name, "unique" from pragma_index_list(?)', kind.table)
    }
    expected = {
        (True, ("id",)),
        *((True, names) for names in kind.unique),
        *((False, names) for names in kind.index),
    }
    assert there == here == expected


@every_table
async def test_both_have_the_same_references_and_logs_have_none(
    kind: type[Row], file: Path, running: SupabaseLite, postgres: Postgres
) -> None:
    found = postgres.query(
        "select a.attname, f.relname, c.confdeltype from pg_constraint c"
        " join pg_class f on f.oid = c.confrelid"
        " join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]"
        f" where c.contype = 'f' and c.conrelid = 'public.{kind.table}'::regclass"
    )
    here = _ask(file, 'select "from", "table", on_delete from pragma_foreign_key_list(?)', kind.table)
    assert {column: owner for column, owner, _ in found} == {c: o for c, o, _ in here} == kind.belongs
    assert {rule for _, _, rule in found} <= {"c"}
    assert {rule for _, _, rule in here} <= {"CASCADE"}
    assert not (kind.table in _LOGS and kind.belongs)


@every_table
def test_without_the_service_key_there_is_nothing_to_see(
    kind: type[Row], endpoint: SupabaseLite, postgres: Postgres
) -> None:
    [[secured]] = postgres.query(
        f"select relrowsecurity from pg_class where oid = 'public.{kind.table}'::regclass"
    )
    [[policies]] = postgres.query(f"select count(*) from pg_policies where tablename = '{kind.table}'")
    assert (secured, policies) == ("t", "0")
    request = urllib.request.Request(f"{endpoint.url}/rest/v1/{kind.table}?select=id")
    request.add_header("apikey", PUBLISHABLE)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer) == []
    except urllib.error.HTTPError as error:
        with error:
            assert error.code == 401


def test_both_begin_with_the_same_default_project_and_version(
    running: SupabaseLite, postgres: Postgres
) -> None:

    assert postgres.query("select id, slug from projects where slug = 'default'") == [
        [str(project_key("default")), "default"]
    ]
    assert postgres.query("select value->>'version' from settings where scope = '@schema'") == [
        [str(schema.VERSION)]
    ]


def test_what_a_later_migration_forgets_is_closed_all_the_same(
    running: SupabaseLite, postgres: Postgres
) -> None:
    """Supabase opens what is new in the schema to keys that anybody may have; our migration takes that back."""
    closes = (
        Path(__file__).parents[2] / "supabase" / "migrations" / "20261122210000_privileges.sql"
    ).read_text("utf-8")
    opens = "".join(
        f"alter default privileges in schema public grant all on {kind} to anon, authenticated, service_role;"
        for kind in ("tables", "sequences", "functions")
    )
    rights = (
        "select r, p, has_table_privilege(r, 'public.%s', p) from unnest(array['anon', 'authenticated']) r,"
        " unnest(array['select', 'insert', 'update', 'delete', 'truncate']) p"
        " union select 'anon', 'sequence', has_sequence_privilege('anon', 'public.%s_id_seq', 'usage')"
        " order by 1, 2;"
    )

    def told(name: str) -> str:
        return f"create table public.{name} (id serial primary key);{rights.replace('%s', name)}"

    found = postgres.query(f"begin; {opens}{told('before')}{closes}{told('after')} rollback;")
    rows = [row[2] for row in found if len(row) == 3]
    assert rows == ["t"] * 11 + ["f"] * 11
