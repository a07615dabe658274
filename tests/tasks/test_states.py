"""The states of tasks on a real store: what leads where, one row for each transition, one winner of a race."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import Conflict, ToolError
from shared.store.records import Audit, Project, Task, TaskEvent, TaskStatus, new_id, project_key
from shared.store.row import now
from shared.store.sqlite import SqliteStore
from shared.tasks import graph, states
from tests.support.processes import ROOT

STATES = get_args(TaskStatus)
# What a person reads of the machine, said a second time: each state, and where it leads by itself or by a word.
TABLE = {
    "DEFINED": {"READY"},
    "AWAITING_PLAN_APPROVAL": {"READY", "COMPLETED"},
    "READY": {"ASSIGNED", "DEFINED", "PAUSED", "BLOCKED"},
    "ASSIGNED": {"IN_PROGRESS", "READY", "PAUSED", "BLOCKED"},
    "IN_PROGRESS": {"VERIFYING", "AWAITING_PLAN_APPROVAL", "FAILED", "READY", "BLOCKED", "PAUSED", "WAITING_INPUT"},
    "WAITING_INPUT": {"IN_PROGRESS", "PAUSED", "FAILED", "BLOCKED"},
    "PAUSED": {"READY"},
    "VERIFYING": {"COMPLETED", "FAILED", "AWAITING_APPROVAL"},
    "AWAITING_APPROVAL": {"COMPLETED", "READY", "BLOCKED"},
    "FAILED": {"READY", "PAUSED", "BLOCKED", "COMPLETED"},
    "BLOCKED": {"COMPLETED", "READY"},
    "COMPLETED": {"READY"},
}  # fmt: skip


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = await opened(tmp_path / "store.db")
    yield made
    await made.close()


async def opened(file: Path) -> SqliteStore:
    made = SqliteStore(file)
    await made.open()
    await made.upsert([Project(slug="shop", name="Shop")])
    return made


async def add(store: SqliteStore, status: str = "READY", **more: Any) -> Task:
    id = new_id()
    values: dict[str, Any] = {"slug": f"task-{id}", "project_id": project_key("shop"), "title": "A task"}
    row = Task(id=id, status=status, **values, **more)
    await store.insert(row)
    return row


async def seen(store: SqliteStore, task: Task) -> Task:
    return (await store.select(Task, {"id": task.id}))[0]


def test_every_state_leads_where_the_table_says() -> None:
    led: dict[str, set[str]] = {state: set() for state in STATES}
    for moves in states.FLOW.values():
        for start, to in moves.items():
            led[start].add(to)
    assert led == TABLE


@settings(max_examples=25)
@given(st.lists(st.sampled_from(sorted(states.FLOW)), max_size=25), st.sampled_from(STATES))
def test_whatever_is_tried_only_the_table_s_transitions_happen_and_each_has_its_row(
    events: list[str], start: str
) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = await opened(Path(folder) / "store.db")
            task, state, made = await add(store, start), start, []
            for number, event in enumerate(events):
                to = states.FLOW[event].get(state)
                try:
                    moved = await states.move(store, task.id, event, "test", str(number))
                except ToolError:
                    assert to is None
                    continue
                assert moved is not None and moved.status == to
                made.append((event, state, to))
                state = str(to)
                assert (moved.resume_at is not None) == (state == "PAUSED")
            rows = await store.select(TaskEvent, {"task_id": task.id}, order=[("created_at", "asc")])
            assert [(row.event, row.from_status, row.to_status) for row in rows] == made
            assert (await seen(store, task)).version == 1 + len(made)
            await store.close()

    asyncio.run(run())


async def test_the_same_transition_twice_is_one(store: SqliteStore) -> None:
    task = await add(store)
    for _ in range(2):
        moved = await states.move(store, task.id, "assigned", "scheduler", "k", assignee="backend")
        assert moved is not None and (moved.status, moved.assignee) == ("ASSIGNED", "backend")
    assert await store.count(TaskEvent) == 1


async def test_who_lost_a_task_writes_nothing_of_it(store: SqliteStore) -> None:
    task = await add(store)
    first = await states.move(store, task.id, "assigned", "s", "1", states.next_epoch(task))
    assert first is not None
    old = states.turn_epoch(first.epoch, 900)
    await states.move(store, task.id, "started", "backend", "1", old)
    lost = await states.move(store, task.id, "lost", "s", "2")
    assert lost is not None
    again = await states.move(store, task.id, "assigned", "s", "3", states.next_epoch(lost))
    assert again is not None
    new = states.turn_epoch(again.epoch, 1)  # of another agent, whose turns have lower numbers
    assert new > old
    await states.move(store, task.id, "started", "frontend", "3", new)
    with pytest.raises(ToolError, match="belongs to another worker"):
        await states.move(store, task.id, "failed", "backend", "1", old)
    assert (await seen(store, task)).status == "IN_PROGRESS"


async def test_a_person_s_override_is_audited_and_fences_whoever_works_on_it(store: SqliteStore) -> None:
    task = await add(store, "IN_PROGRESS", epoch=5)
    moved = await states.override(store, task, "BLOCKED", "chatter", "ann", "k")
    with pytest.raises(ToolError):
        await states.move(store, task.id, "restarted", "backend", "t", states.turn_epoch(0, 6))
    assert moved.epoch > 6
    (audit,) = await store.select(Audit)
    assert (audit.person, audit.detail["from"], audit.detail["to"]) == ("ann", "IN_PROGRESS", "BLOCKED")
    with pytest.raises(Conflict):
        await states.override(store, task, "READY", "chatter", "bob", "k2")


async def test_what_waited_for_a_task_is_ready_when_the_last_of_them_is_completed(store: SqliteStore) -> None:
    first, second, last = await add(store), await add(store), await add(store)
    for needed in (first, second):
        last = await graph.connect(store, last, needed, "test", f"edge-{needed.id}")
    assert last.status == "DEFINED"
    for number, task in enumerate((first, second)):
        assert (await seen(store, last)).status == "DEFINED"
        for event in ("assigned", "started", "completed", "passed"):
            await states.move(store, task.id, event, "test", f"{number}")
    assert (await seen(store, last)).status == "READY"
    with pytest.raises(ToolError, match="circle"):
        await graph.connect(store, first.model_copy(update={"status": "READY"}), last, "test", "x")


async def test_who_comes_second_to_make_a_task_ready_finds_it_done(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await add(store, "DEFINED"), await add(store, "DEFINED")
    needed = await add(store, "VERIFYING")
    await graph.connect(store, first, needed, "planner", "k1")
    await graph.connect(store, second, needed, "planner", "k2")
    looked = states.waits_for

    async def raced(store: SqliteStore, task: Task) -> list[Task]:
        waits = await looked(store, task)
        await states.move(store, task.id, "dependencies_met", "scheduler", f"scheduler:{task.id}")
        return waits

    monkeypatch.setattr(states, "waits_for", raced)
    moved = await states.move(store, needed.id, "passed", "backend", "k3")
    assert moved and moved.status == "COMPLETED"
    assert [(await seen(store, task)).status for task in (first, second)] == ["READY", "READY"]
    assert await store.count(TaskEvent, {"event": "dependencies_met"}) == 2


async def test_a_pause_has_a_time_at_which_it_ends(store: SqliteStore) -> None:
    task = await add(store, "IN_PROGRESS")
    moved = await states.move(store, task.id, "budget_spent", "backend", "k")
    assert moved is not None and moved.resume_at is not None and moved.resume_at > now()


RACE = """
import asyncio, sys
from pathlib import Path
from shared.errors import PromptDockError
from shared.store.records import Task
from shared.store.sqlite import SqliteStore
from shared.tasks import states as machine

async def main(file, name):
    store = SqliteStore(Path(file))
    await store.open()
    tasks = await store.select(Task, {"status": "READY"}, order=[("slug", "asc")])
    print("ready", flush=True)
    sys.stdin.readline()
    for task in tasks:
        try:
            await machine.move(store, task.id, "assigned", name, f"{name}:{task.slug}", assignee=name)
            print("won", task.slug, flush=True)
        except PromptDockError:
            pass
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def race(file: Path) -> list[str]:
    """Eight processes go for all tasks of a store at the same moment; what each says that it won."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(file), f"racer{n}"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(8)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        return [racer.communicate(timeout=60)[0] for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()


async def test_of_eight_processes_that_claim_a_task_one_wins(store: SqliteStore, tmp_path: Path) -> None:
    tasks = [await add(store) for _ in range(25)]
    said = await asyncio.to_thread(race, tmp_path / "store.db")
    won = sorted(line.removeprefix("won ") for text in said for line in text.splitlines())
    assert won == sorted(task.slug for task in tasks)
    rows = await store.select(TaskEvent)
    owners = {task.id: task.assignee for task in await store.select(Task)}
    assert {row.task_id: row.actor for row in rows} == owners
    assert len(rows) == len(tasks)
