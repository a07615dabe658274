"""A fresh Store of each kind; Postgres and the REST endpoint are started once for all tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from shared.store.base import Store
from shared.store.records import TABLES
from shared.store.supabase import SupabaseStore
from tests.support.postgres import Missing, Postgres
from tests.support.sqlite import blank
from tests.support.supabase_lite import SECRET, SupabaseLite

# Each row by itself: to truncate makes a new file for every table and index, and takes five times as long.
_EMPTY = (
    "set session_replication_role = replica;"
    + "".join(f"delete from {kind.table};" for kind in TABLES if kind.table not in ("projects", "settings"))
    + "delete from search_words; delete from settings where scope <> '@schema';"
    "delete from projects where slug <> 'default'"
)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    try:
        server = Postgres()
        server.start()
    except Missing as missing:
        pytest.skip(f"no Postgres: {missing}")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def running(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SupabaseLite]:
    try:
        lite = SupabaseLite(postgres, tmp_path_factory.mktemp("lite"))
    except Missing as missing:
        pytest.skip(f"no Supabase endpoint: {missing}")
    lite.migrate()
    lite.start()
    yield lite
    lite.kill()


@pytest.fixture
def endpoint(running: SupabaseLite, postgres: Postgres) -> SupabaseLite:
    """The running endpoint, with empty tables."""
    postgres.query(_EMPTY)
    return running


@pytest.fixture(params=["sqlite", "supabase"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An open, empty Store."""
    made: Store
    if request.param == "sqlite":
        made = await blank(tmp_path / "store.db")
    else:
        made = SupabaseStore(request.getfixturevalue("endpoint").url, SECRET, limit=60.0)
        await made.open()
    yield made
    await made.close()
