"""What is special to the Store in one file: several processes, permissions, other schemas, faults."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.errors import ConfigurationError, Conflict, StoreUnavailable
from shared.store import schema
from shared.store import sqlite as module
from shared.store.records import Log, Memory, Project, Session, Setting, Task, project_key
from shared.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]

_WRITER = """
import asyncio, sys
from pathlib import Path
from shared.store.records import Log, Setting
from shared.store.sqlite import SqliteStore

async def main(path, name, count):
    store = SqliteStore(Path(path))
    await store.open()
    for number in range(count):
        await store.insert(Log(agent=name, message=str(number)))
        while True:  # raise the shared counter by compare and set
            [seen] = await store.select(Setting, {"scope": "test", "key": "counter"}) or [None]
            raised = {"value": {"n": seen.value["n"] + 1}, "version": seen.version + 1}
            if await store.update(Setting, raised, {"id": seen.id, "version": seen.version}):
                break
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""
_OPENER = """
import asyncio, sys
from pathlib import Path
from shared.store.sqlite import SqliteStore

async def main(path):
    store = SqliteStore(Path(path))
    await store.open()
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "home" / "store.db")
    await store.open()
    yield store
    await store.close()


async def _processes(script: str, *arguments: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, *given, env=environment, stderr=asyncio.subprocess.PIPE
        )
        for given in arguments
    ]
    try:
        for process in started:
            _, errors = await asyncio.wait_for(process.communicate(), 90)
            assert process.returncode == 0, errors.decode()
    finally:
        for process in started:
            if process.returncode is None:
                process.kill()
                await asyncio.wait_for(process.communicate(), 30)


async def test_several_processes_that_write_at_once_lose_nothing(store: SqliteStore) -> None:
    await store.insert(Setting(scope="test", key="counter", value={"n": 0}))
    await _processes(_WRITER, *([str(store.path), f"w{number}", "50"] for number in range(4)))
    assert [await store.count(Log, {"agent": f"w{number}"}) for number in range(4)] == [50] * 4
    [counter] = await store.select(Setting, {"scope": "test"})
    assert (counter.value["n"], counter.version) == (200, 201)


async def test_several_processes_may_make_the_file_at_once(tmp_path: Path) -> None:
    await _processes(_OPENER, *([str(tmp_path / "new" / "store.db")] for _ in range(6)))
    store = SqliteStore(tmp_path / "new" / "store.db")
    await store.open()
    assert await store.count(Project) == 1
    await store.close()


async def test_only_the_owner_can_read_the_file_and_its_logs(store: SqliteStore) -> None:
    await store.insert(Log(agent="a", message="x"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.path.parent.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


async def test_a_batch_is_written_whole_or_not_at_all(store: SqliteStore) -> None:
    await store.insert(Session(key="taken"))
    with pytest.raises(Conflict):
        await store.upsert([Log(agent="a", message="x"), Session(key="free"), Session(key="taken")])
    assert (await store.count(Log), await store.count(Session)) == (0, 1)


async def test_a_write_that_was_cancelled_leaves_the_store_usable(store: SqliteStore) -> None:
    rows = [Log(agent="a", message=str(number)) for number in range(2000)]
    for _ in range(10):
        task = asyncio.create_task(store.upsert(rows))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await store.insert(Log(agent="b", message="after"))
    assert await store.count(Log, {"agent": "b"}) == 1
    assert await store.count(Log, {"agent": "a"}) in (0, 2000)


async def test_a_newer_schema_is_refused_and_left_alone(store: SqliteStore) -> None:
    await store.close()
    connection = sqlite3.connect(store.path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ConfigurationError, match="newer PromptDock") as caught:
        await store.open()
    assert caught.value.exit_code == 4
    connection = sqlite3.connect(store.path)
    assert connection.execute("PRAGMA user_version").fetchone() == (99,)
    connection.close()


async def test_an_older_file_gets_what_it_lacks_and_keeps_its_rows(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.insert(Task(slug="old", project_id=project_key("default"), title="old"))
    await store.close()
    connection = sqlite3.connect(store.path)
    connection.executescript(
        "ALTER TABLE tasks DROP COLUMN plan; ALTER TABLE tasks DROP COLUMN archived; DROP TABLE logs;"
        f"DROP INDEX sessions_key_key; PRAGMA user_version = {schema.VERSION}"
    )
    connection.close()
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    await store.open()
    [task] = await store.select(Task)
    assert (task.slug, task.plan, task.archived) == ("old", {}, False)
    await store.insert(Log(agent="a", message="x"))
    await store.insert(Session(key="one"))
    with pytest.raises(Conflict):
        await store.insert(Session(key="one"))


async def test_a_column_of_a_later_release_is_ignored_and_kept(store: SqliteStore) -> None:
    row = Log(agent="a", message="x")
    await store.insert(row)
    connection = sqlite3.connect(store.path)
    connection.execute("ALTER TABLE logs ADD COLUMN later TEXT DEFAULT 'kept'")
    connection.close()
    await store.upsert([row.model_copy(update={"message": "y"})])
    assert [found.message for found in await store.select(Log)] == ["y"]
    connection = sqlite3.connect(store.path)
    assert connection.execute("SELECT message, later FROM logs").fetchall() == [("y", "kept")]
    connection.close()


async def test_a_lock_that_another_process_keeps_is_unavailable_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY", 0.2)
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.insert(Log(agent="a", message="x"))
    assert await store.count(Log) == 0
    other.execute("ROLLBACK")
    other.close()
    await store.insert(Log(agent="a", message="x"))
    await store.close()


async def test_a_short_read_does_not_wait_for_the_writes_before_it(store: SqliteStore) -> None:
    await store.insert(Log(agent="a", message="before"))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # our next write stands in line behind this one
    write = asyncio.create_task(store.insert(Log(agent="a", message="after")))
    await asyncio.sleep(0)
    async with asyncio.timeout(2):
        assert [row.message for row in await store.select(Log, limit=module.GLANCE)] == ["before"]
    assert not write.done()
    other.execute("ROLLBACK")
    other.close()
    await write
    assert [row.message for row in await store.select(Log, order=[("created_at", "asc")], limit=2)] == [
        "before",
        "after",
    ]


async def test_rows_that_are_named_are_read_without_those_that_share_all_else_with_them(
    store: SqliteStore,
) -> None:
    place = project_key("default")
    rows = [Memory(kind="turn", project_id=place, user_id="ann", body=str(number)) for number in range(1000)]
    await store.upsert(rows)
    steps: list[None] = []  # thousands of instructions of SQLite
    assert store._reader is not None
    store._reader.set_progress_handler(lambda: steps.append(None), 1000)
    where = {"project_id": ("in", [place]), "kind": "turn", "id": ("in", [row.id for row in rows[:20]])}
    assert len(await store.select(Memory, where, limit=100)) == 20
    assert len(steps) < 5


async def test_a_full_disk_is_unavailable_and_passes(store: SqliteStore) -> None:
    assert store._db is not None
    await store._db.execute("PRAGMA max_page_count = 1")  # no more pages than there are
    with pytest.raises(StoreUnavailable, match="disk is full"):
        await store.upsert([Log(agent="a", message="x" * 10_000) for _ in range(20)])
    assert await store.count(Log) == 0
    await store._db.execute("PRAGMA max_page_count = 100000")
    await store.insert(Log(agent="a", message="x"))


async def test_a_file_that_is_no_database_is_unavailable_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"these are not the rows you look for " * 200)
    store = SqliteStore(path)
    with pytest.raises(StoreUnavailable, match="not a database"):
        await store.open()
    assert path.read_bytes().startswith(b"these are not")


async def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        await SqliteStore(tmp_path / "file" / "store.db").open()
