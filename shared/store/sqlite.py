"""The Store in one SQLite file, for one machine: several processes may use it at once."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shared import failpoints
from shared.errors import ConfigurationError, StoreUnavailable
from shared.store import fulltext, query, schema, statements
from shared.store.base import Found, Order, Store, Where
from shared.store.records import Project, Row
from shared.store.sqlite_refusal import BUSY, explained

if TYPE_CHECKING:
    import aiosqlite
    from tenacity import AsyncRetrying

R = TypeVar("R", bound=Row)

WAIT = 10.0  # seconds that a call waits for the calls before it
# KiB of pages that each of our two connections keeps. SQLite's 2 MiB fill up as the file grows, in each worker,
# and the system keeps the same pages for all of them.
_CACHE = "PRAGMA cache_size = -512"
# Rows up to which a read is made at once, on the caller's own thread: it takes some 50 us, while the way to a
# thread and back takes milliseconds in a busy process. With a write-ahead log it waits for no write either.
GLANCE = 200


class SqliteStore(Store):
    """Rows in the SQLite file at `path`, which is made (0600, in a folder of 0700) where it is missing."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db: aiosqlite.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        # One connection has one transaction at a time: whole transactions take turns.
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        import aiosqlite

        if self._db is not None:
            return
        with explained(self.path):
            _prepare(self.path)
            self._db = await aiosqlite.connect(self.path, timeout=BUSY, isolation_level=None)
        try:
            await self._begin()
            with explained(self.path):
                self._reader = sqlite3.connect(
                    f"{self.path.absolute().as_uri()}?mode=ro", timeout=0, uri=True
                )
                self._reader.execute(_CACHE)
        except BaseException:
            await self.close()
            raise

    async def _begin(self) -> None:
        async with self._session() as db:
            await db.execute("PRAGMA foreign_keys = ON")
            await db.execute(_CACHE)
            version = await _version(db)
            if version > schema.VERSION:
                raise ConfigurationError(
                    f"the database {self.path} was written by a newer PromptDock",
                    f"its schema is {version}, this program knows those up to {schema.VERSION}",
                    "upgrade PromptDock, or set PROMPTDOCK_HOME to another folder",
                )
            if version < schema.VERSION:
                await _to_wal(db)
        # A transaction even where nothing is to do: it proves that writing is allowed.
        async with self._write() as db:
            if await _version(db) < schema.VERSION:
                await _migrate(db)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiosqlite.Connection]:
        """The connection, to oneself; errors of SQLite come out as ours."""
        try:
            async with asyncio.timeout(WAIT):
                await self._turn.acquire()
        except TimeoutError:
            raise StoreUnavailable(f"the database {self.path} is busy", f"no turn in {WAIT:.0f} s") from None
        try:
            if self._db is None:
                raise StoreUnavailable(f"the database {self.path} is not open", "", "open the Store first")
            with explained(self.path):
                yield self._db
        finally:
            self._turn.release()

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[aiosqlite.Connection]:
        async with self._session() as db, _transaction(db):
            yield db

    async def insert(self, row: Row, beside: Sequence[Row] = ()) -> None:
        async with self._write() as db:
            await db.execute(statements.insert(type(row)), statements.values(row))
            await _beside(db, beside)

    async def upsert(self, rows: Sequence[Row]) -> None:
        async with self._write() as db:
            for kind, group in query.by_table(rows).items():
                await db.executemany(statements.upsert(kind), [statements.values(row) for row in group])

    async def select(
        self,
        kind: type[R],
        where: Where | None = None,
        order: Order = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        text, values = statements.where(query.conditions(kind, where))
        parts = ", ".join(
            f"{c} {'DESC' if down else 'ASC'} NULLS LAST" for c, down in query.ordering(kind, order)
        )
        sql = f"SELECT {statements.names(kind)} FROM {kind.table}{text} ORDER BY {parts} LIMIT ? OFFSET ?"
        values += [-1 if limit is None else limit, offset]
        found = self._glance(sql, values) if limit is not None and limit <= GLANCE else None
        if found is None:
            async with self._session() as db:
                found = list(await db.execute_fetchall(sql, values))
        return [statements.parsed(kind, record) for record in found]

    def _glance(self, sql: str, values: list[Any]) -> list[Any] | None:
        """The rows at once; None where this is to be tried patiently, and explained if it fails again."""
        try:
            return self._reader.execute(sql, values).fetchall() if self._reader is not None else None
        except sqlite3.Error:
            return None

    async def count(self, kind: type[Row], where: Where | None = None) -> int:
        text, values = statements.where(query.conditions(kind, where))
        async with self._session() as db:
            found = list(await db.execute_fetchall(f"SELECT count(*) FROM {kind.table}{text}", values))
        return int(found[0][0])

    async def search(
        self, kind: type[R], words: str, where: Where | None = None, limit: int = 10
    ) -> Found[R]:
        fulltext.searched(kind)
        asked, conditions = fulltext.asked(words), query.conditions(kind, where)
        if not asked or any(one.op == "in" and not one.value for one in conditions):
            return Found([], 0)
        tests, scope = statements.where(conditions), fulltext.scope(kind, conditions)
        async with self._session() as db:
            (held,) = await _counts(db, [scope], fulltext.WIDE)
            # bm25 counts the rows that each part of its query fits: those of a wide scope in vain, so that words alone
            # are looked for there, and the conditions choose among what they find.
            within = "" if held >= fulltext.WIDE else f"{scope} AND "
            looked = [f"{within}{fulltext.anywhere([word])}" for word in asked]
            counts = await _counts(db, looked, fulltext.BUDGET + 1)
            told = fulltext.rare(asked, counts)
            sql, given = statements.best(kind, f"{within}{fulltext.anywhere(told)}", tests, limit)
            found = list(await db.execute_fetchall(sql, given))
            if not found and len(told) < sum(map(bool, counts)):
                sql, given = statements.best(kind, f"{within}{fulltext.anywhere(asked)}", tests, limit)
                found = list(await db.execute_fetchall(sql, given))
        return Found(
            [(statements.parsed(kind, record[:-2]), record[-2]) for record in found],
            found[0][-1] if found else 0,
        )

    async def update(
        self, kind: type[R], changes: Mapping[str, Any], where: Where, beside: Sequence[Row] = ()
    ) -> list[R]:
        changed = statements.stored(kind, query.changed(kind, changes))
        if beside:
            query.pinned(kind, where)
        text, values = statements.where(query.required(kind, where))
        sets = ", ".join(f"{column} = ?" for column in changed)
        sql = f"UPDATE {kind.table} SET {sets}{text} RETURNING {statements.names(kind)}"
        async with self._write() as db:
            found = await db.execute_fetchall(sql, [*changed.values(), *values])
            if found:
                await _beside(db, beside)
        return [statements.parsed(kind, record) for record in found]

    async def delete(self, kind: type[Row], where: Where) -> int:
        text, values = statements.where(query.required(kind, where))
        async with self._write() as db:
            return (await db.execute(f"DELETE FROM {kind.table}{text}", values)).rowcount

    async def close(self) -> None:
        db, self._db = self._db, None
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
        if db is not None:
            await db.close()


async def _beside(db: aiosqlite.Connection, rows: Sequence[Row]) -> None:
    """Write rows that belong to what was just written, in the same transaction."""
    if rows:
        failpoints.point("written beside", rows[0].table)
    for kind, group in query.by_table(rows).items():
        text = f"{statements.insert(kind)} ON CONFLICT (id) DO NOTHING"
        await db.executemany(text, [statements.values(row) for row in group])


async def _counts(db: aiosqlite.Connection, matches: Sequence[str], most: int) -> list[int]:
    """How many rows of the index fit each of these, no further than `most`."""
    one = "(SELECT count(*) FROM (SELECT 1 FROM search_words WHERE search_words MATCH ? LIMIT ?))"
    given = [part for match in matches for part in (match, most)]
    found = await db.execute_fetchall(f"SELECT {', '.join([one] * len(matches))}", given)
    return [int(count) for count in next(iter(found))]


def _prepare(path: Path) -> None:
    """Make the file readable by its owner alone, before SQLite makes it readable by more."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)


async def _version(db: aiosqlite.Connection) -> int:
    return int(next(iter(await db.execute_fetchall("PRAGMA user_version")))[0])


async def _to_wal(db: aiosqlite.Connection) -> None:
    """Switch to a write-ahead log; the switch ignores SQLite's busy timeout, so it is tried again here."""
    async for attempt in _patiently():
        with attempt:
            await db.execute_fetchall("PRAGMA journal_mode = WAL")


def _patiently() -> AsyncRetrying:
    from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random

    return AsyncRetrying(
        retry=retry_if_exception_type(sqlite3.OperationalError),
        stop=stop_after_delay(BUSY),
        wait=wait_random(0.01, 0.05),
        reraise=True,
    )


async def _migrate(db: aiosqlite.Connection) -> None:
    """Bring an empty or older file to this schema, inside the caller's transaction."""
    before = await _version(db)
    for statement in schema.tables():
        await db.execute(statement)
    for statement in schema.additions(await _present(db)):
        await db.execute(statement)
    for statement in (*schema.indexes(), *fulltext.statements(), *fulltext.missing()):
        await db.execute(statement)
    if 0 < before < 5:
        for statement in schema.makers():
            await db.execute(statement)
    if before == 0:
        project = Project(slug="default", name="Default")
        await db.execute(statements.insert(Project), statements.values(project))
    await db.execute(f"PRAGMA user_version = {schema.VERSION}")


async def _present(db: aiosqlite.Connection) -> dict[str, set[str]]:
    sql = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
    present: dict[str, set[str]] = {}
    for table, column in await db.execute_fetchall(sql):
        present.setdefault(table, set()).add(column)
    return present


@asynccontextmanager
async def _transaction(db: aiosqlite.Connection) -> AsyncIterator[None]:
    """All or nothing. IMMEDIATE: who reads first and writes later would be refused, not made to wait."""
    try:
        await db.execute("BEGIN IMMEDIATE")
        yield
        await db.commit()
    except BaseException:
        # Statements of one connection run in order, so this also undoes one whose caller was cancelled.
        await asyncio.shield(db.rollback())
        raise
