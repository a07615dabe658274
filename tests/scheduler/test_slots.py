"""Who is given which tasks follows from heartbeats, and where they do not say, from the profile of that name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from shared.profiles.profile import load
from shared.store.records import Task, project_key
from shared.store.sqlite import SqliteStore
from shared.worker.budgets.ledger import Ledger, Window
from shared.worker.changes import ChangeWatch
from shared.worker.connection import Connection
from shared.worker.services.snapshot import SnapshotReader

FRONT, BACK, ALL = {"frontend", "both"}, {"backend", "both"}, {"frontend", "backend", "both"}


def reader_of(store: SqliteStore, home: Path, cards: list[dict[str, Any]]) -> SnapshotReader:
    """A reader to which these are here, each with nothing in its queue."""

    async def here() -> list[dict[str, Any]]:
        return cards

    async def nothing(*_: Any) -> int:
        return 0

    async def window() -> Window:
        return Window(0.0, 0.0, {}, {}, {})

    @contextmanager
    def reading(*_: Any) -> Iterator[bool]:
        yield True

    connection = SimpleNamespace(
        presence=SimpleNamespace(here=here),
        bus=SimpleNamespace(listeners=nothing),
        queue=lambda _agent: SimpleNamespace(size=nothing),
    )
    ledger, watch = SimpleNamespace(window=window), SimpleNamespace(reading=reading)
    return SnapshotReader(
        *(cast(Connection, connection), store, cast(Ledger, ledger), cast(ChangeWatch, watch)), home, None
    )


async def taken(store: SqliteStore, home: Path, *cards: dict[str, Any]) -> dict[str, set[str]]:
    """By agent, the kinds of tasks that it takes where they name nobody."""
    found = await reader_of(store, home, list(cards)).snapshot()
    return {slot.agent: set(slot.takes) for slot in found.slots}


async def test_a_heartbeat_says_which_tasks_its_agent_takes(store: SqliteStore, tmp_path: Path) -> None:
    assert await taken(
        store,
        tmp_path,
        {"agent": "mason", "kind": "coding", "repositories": ["frontend", "both"], "plans": False},
        {"agent": "architect", "kind": "consult", "repositories": [], "plans": True},
        {"agent": "critic", "kind": "consult", "repositories": [], "plans": False},
        {"agent": "host", "kind": "chat", "repositories": [], "plans": False},
    ) == {"mason": FRONT, "architect": {"plan"}, "critic": set()}


async def test_who_does_not_say_takes_the_tasks_of_the_agent_whose_name_it_has(
    store: SqliteStore, tmp_path: Path
) -> None:
    assert await taken(
        store,
        tmp_path,
        {"agent": "backend", "kind": "coding"},
        {"agent": "planner", "kind": "bridge"},
        {"agent": "mason", "kind": "coding"},
        {"agent": "frontend", "kind": "bridge"},
    ) == {"backend": BACK, "planner": {"plan"}, "mason": ALL, "frontend": set()}


async def test_a_profile_that_cannot_be_read_holds_nothing_up(store: SqliteStore, tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "mason"
    folder.mkdir(parents=True)
    (folder / "profile.toml").write_text("kind = ")
    assert await taken(store, tmp_path, {"agent": "mason", "kind": "coding"}) == {"mason": ALL}


async def test_a_plan_that_names_nobody_waits_for_who_plans(store: SqliteStore, tmp_path: Path) -> None:
    await store.insert(
        Task(slug="calm-fox", project_id=project_key("shop"), title="x", description="x", type="plan")
    )
    (work,) = (await reader_of(store, tmp_path, []).snapshot()).work
    assert (work.wants, work.kind) == ("", "plan")


def test_who_stands_in_for_a_shipped_agent_takes_its_tasks_unless_it_says_otherwise(tmp_path: Path) -> None:
    for name, more in (("backend", ""), ("frontend", 'repositories = ["both"]')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "profile.toml").write_text(f'kind = "coding"\n{more}\n')
        (tmp_path / name / "prompt.md").write_text("You work.")
    assert load(tmp_path / "backend").works_on == BACK
    assert load(tmp_path / "frontend").works_on == {"both"}
