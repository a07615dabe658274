"""A hook whose agent is away: its run ends in time, and keeps no other from being begun."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.bus.keys import Names
from shared.hooks import launch
from shared.store.records import HookRun
from shared.store.row import now
from shared.store.sqlite import SqliteStore
from shared.worker.services import hooks
from shared.worker.services.hooks import HookService
from tests.hooks.conftest import Make
from tests.support.guards import guarded


class Bus:
    """Nobody is there, or somebody; and what was taken back."""

    def __init__(self, store: SqliteStore, state: str = "withdrawn") -> None:
        self.there: list[Any] = []
        self.state, self.taken = state, list[str]()
        names = Names("x")
        queue = SimpleNamespace(withdraw=self._withdraw)
        connection = SimpleNamespace(bus=self, names=names, presence=self, queue=lambda _agent: queue)
        tools, changes = SimpleNamespace(store=store), SimpleNamespace(watch=lambda *_rows: None)
        self.service = HookService(*cast(Any, (tools, connection, None, changes)))

    async def here(self, _agent: str) -> list[Any]:
        return self.there

    async def listeners(self, _channel: str) -> int:
        return 0

    async def _withdraw(self, request: str) -> str:
        self.taken.append(request)
        return self.state


async def _waiting(store: SqliteStore, make: Make, slug: str) -> HookRun:
    """A run whose words went to an agent that nobody serves."""
    hook = await make(slug, llm_config={"agent": "nobody"})
    run = await launch.launch(store, hook, slug, "manual", now(), by_hand=True)
    assert isinstance(run, HookRun)
    begun = await launch.begin(store, run, f"hook:{run.id}")
    assert begun
    event = {"agent": "nobody"}
    [sent] = await store.update(HookRun, {"turn_id": f"hook:{run.id}", "event": event}, {"id": run.id})
    return sent


@guarded("hook-agent")
async def test_two_hooks_whose_agent_nobody_serves_do_not_occupy_all_places(
    store: SqliteStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "ABSENT", 0.0)
    bus = Bus(store)
    service = bus.service
    for run in [await _waiting(store, make, slug) for slug in ("one", "two")]:
        await service._finish(run)
    ended = await store.select(HookRun)
    assert [run.state for run in ended] == ["failed", "failed"]
    assert all("nobody serves nobody: start it" in run.error for run in ended)


async def test_an_agent_that_is_away_for_a_moment_is_waited_for(store: SqliteStore, make: Make) -> None:
    bus = Bus(store)
    service, run = bus.service, await _waiting(store, make, "one")
    await service._finish(run)
    assert (await store.select(HookRun))[0].state == "running" and bus.taken == []
    bus.there = [{"agent": "nobody"}]
    await service._finish(run)
    assert service._away == {}


async def test_what_was_begun_is_not_taken_back(
    store: SqliteStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "ABSENT", 0.0)
    bus = Bus(store, "running")
    await bus.service._finish(await _waiting(store, make, "one"))
    assert (await store.select(HookRun))[0].state == "running"
