"""A row and what is written beside it: both or neither, whatever dies in between; on SQLite and on Supabase."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shared.errors import Conflict
from shared.store.base import Store
from shared.store.records import Task, TaskEvent, derived, new_id, project_key
from shared.store.sqlite import SqliteStore
from tests.support.postgres import Postgres
from tests.support.processes import ROOT, until
from tests.support.supabase_lite import SECRET, SupabaseLite

# Moves the one task, or makes another one, in a store that the arguments name.
WRITER = """
import asyncio, sys
from pathlib import Path
from shared.store.records import Task
from shared.store.sqlite import SqliteStore
from shared.store.supabase import SupabaseStore
from shared.tasks import states as machine
from shared.tasks.create import create

async def main(place, key, what):
    store = SupabaseStore(place, key, limit=60.0) if key else SqliteStore(Path(place))
    await store.open()
    [task] = await store.select(Task)
    print("ready", flush=True)
    if what == "move":
        await machine.move(store, task.id, "assigned", "scheduler", "k", assignee="backend")
    else:
        await create(store, "chatter", [Task(slug="", project_id=task.project_id, title="Another")])
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def _task(**more: object) -> Task:
    return Task(**{"slug": "otter", "project_id": project_key("default"), "title": "A task", **more})


def _event(task: Task, name: str) -> TaskEvent:
    return TaskEvent(id=derived("e", name), task_id=task.id, event=name, to_status="READY", actor="test")


async def test_a_row_and_what_stands_beside_it_are_written_together(store: Store) -> None:
    task = _task(description="ünï 🦦", plan={"a": [1, None]}, budget=0.5)
    await store.insert(task, beside=[_event(task, "created")])
    where = {"id": task.id, "version": 1}
    [moved] = await store.update(
        Task, {"status": "ASSIGNED", "version": 2}, where, beside=[_event(task, "moved")]
    )
    assert moved == task.model_copy(
        update={"status": "ASSIGNED", "version": 2, "updated_at": moved.updated_at}
    )
    assert await store.select(Task) == [moved]
    assert {row.event for row in await store.select(TaskEvent)} == {"created", "moved"}


async def test_who_loses_writes_nothing_beside_either(store: Store) -> None:
    task = _task()
    await store.insert(task)
    where = {"id": task.id, "version": 7}
    assert (
        await store.update(Task, {"status": "ASSIGNED", "version": 8}, where, beside=[_event(task, "x")])
        == []
    )
    with pytest.raises(Conflict):
        await store.insert(_task(id=new_id()), beside=[_event(task, "y")])
    assert await store.count(TaskEvent) == 0


async def test_a_row_that_the_other_cannot_stand_beside_is_not_written(store: Store) -> None:
    task, orphan = _task(), _task(id=new_id(), slug="orphan", project_id=new_id())
    with pytest.raises(Conflict):
        await store.insert(task, beside=[orphan])
    assert await store.count(Task) == 0
    await store.insert(task)
    with pytest.raises(Conflict):
        where = {"id": task.id, "version": 1}
        await store.update(Task, {"status": "ASSIGNED", "version": 2}, where, beside=[orphan])
    assert await store.select(Task) == [task]


async def test_a_row_beside_that_is_there_already_stays_as_it_is(store: Store) -> None:
    task = _task()
    first = _event(task, "created")
    await store.upsert([first])
    await store.insert(task, beside=[first.model_copy(update={"actor": "somebody else"})])
    assert [row.actor for row in await store.select(TaskEvent)] == ["test"]


async def test_what_stands_beside_a_change_needs_the_id_and_the_version(store: Store) -> None:
    task = _task()
    for where in ({"id": task.id}, {"version": 1, "slug": "otter"}, {"id": task.id, "version": ("lt", 5)}):
        with pytest.raises(ValueError):
            await store.update(Task, {"status": "READY"}, where, beside=[_event(task, "x")])


def _writes(place: Path | str, key: str, what: str, **environment: str) -> subprocess.Popen[str]:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(place), key, what],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None and writer.stdout.readline() == "ready\n", writer.communicate()[1]
    return writer


async def _end(writer: subprocess.Popen[str]) -> int:
    await asyncio.to_thread(writer.communicate, timeout=60)
    return writer.returncode


@pytest.mark.parametrize("what", ["move", "make"])
async def test_a_process_killed_between_the_two_rows_has_written_neither(tmp_path: Path, what: str) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    task = _task(status="READY")
    await store.insert(task)
    writer = await asyncio.to_thread(
        _writes, store.path, "", what, PROMPTDOCK_FAULT="written beside@task_events"
    )
    assert await _end(writer) == -signal.SIGKILL
    assert (await store.select(Task), await store.count(TaskEvent)) == ([task], 0)
    again = await asyncio.to_thread(_writes, store.path, "", what)
    assert await _end(again) == 0
    events = [row.event for row in await store.select(TaskEvent)]
    assert events == (["assigned"] if what == "move" else ["created"])
    await store.close()


SLOW = """
create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(20); return new; end $$;
create trigger slow before insert on task_events for each row execute function slow();
"""
QUICK = "drop trigger slow on task_events; drop function slow();"
SLEEPING = "from pg_stat_activity where wait_event = 'PgSleep'"


@pytest.mark.parametrize("what", ["move", "make"])
async def test_a_database_that_ends_between_the_two_rows_has_written_neither(
    endpoint: SupabaseLite, postgres: Postgres, what: str
) -> None:
    task = _task(status="READY")
    postgres.query(
        f"insert into tasks (id, project_id, slug, title) values ('{task.id}', '{task.project_id}', 'otter', 'A task')"
    )
    postgres.query(SLOW)
    try:
        writer = await asyncio.to_thread(_writes, endpoint.url, SECRET, what)
        await asyncio.to_thread(
            until, lambda: postgres.query(f"select pid {SLEEPING}"), 60, "the first row's being written"
        )
        assert postgres.query(f"select pg_terminate_backend(pid) {SLEEPING}") == [["t"]]
        assert await _end(writer) != 0
    finally:
        endpoint.kill()  # it does not outlive a connection that its database ends
        postgres.query(QUICK)
        endpoint.start()
    counted = (
        "select (select string_agg(status || version, ',') from tasks), (select count(*) from task_events)"
    )
    assert postgres.query(counted) == [["READY1", "0"]]
    again = await asyncio.to_thread(_writes, endpoint.url, SECRET, what)
    assert await _end(again) == 0
    assert postgres.query("select event from task_events") == [["assigned" if what == "move" else "created"]]


async def test_only_the_service_key_writes_by_the_function(postgres: Postgres, running: SupabaseLite) -> None:
    rights = "select has_function_privilege(r, 'write_beside(text,uuid,bigint,text,text)', 'execute')"
    found = postgres.query(f"{rights} from unnest(array['anon', 'authenticated', 'service_role']) as r")
    assert found == [["f"], ["f"], ["t"]]
