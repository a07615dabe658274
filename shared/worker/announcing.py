"""A Store whose changes to tasks are heard at once by whoever schedules: it need not wait for its next look."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from shared import log
from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.errors import PromptDockError
from shared.store.base import Order, R, Store, Where
from shared.store.records import Project, Row, Task, TaskDependency

_HEARD = (Task, TaskDependency, Project)


class Announcing(Store):
    """Wraps a Store. What it says is a hint that may be lost, and that nobody's write ever waits for."""

    def __init__(self, store: Store, bus: Bus, names: Names) -> None:
        self._store, self._bus, self._channel = store, bus, names.board
        self.name = store.name
        self._due = False
        self._saying: asyncio.Task[None] | None = None

    def _changed(self, *kinds: type[Row]) -> None:
        if any(issubclass(kind, _HEARD) for kind in kinds):
            self._due = True  # also while one is under way, which may have been heard before this change
            if self._saying is None or self._saying.done():
                self._saying = asyncio.create_task(self._say())

    async def _say(self) -> None:
        while self._due:
            self._due = False
            try:
                await self._bus.publish(self._channel, "changed")
            except PromptDockError as error:
                log.get().debug("That tasks changed was not said", why=str(error))

    async def open(self) -> None:
        await self._store.open()

    async def insert(self, row: Row, beside: Sequence[Row] = ()) -> None:
        await self._store.insert(row, beside)
        self._changed(type(row), *map(type, beside))

    async def upsert(self, rows: Sequence[Row]) -> None:
        await self._store.upsert(rows)
        self._changed(*map(type, rows))

    async def select(
        self,
        kind: type[R],
        where: Where | None = None,
        order: Order = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        return await self._store.select(kind, where, order, limit, offset)

    async def count(self, kind: type[Row], where: Where | None = None) -> int:
        return await self._store.count(kind, where)

    async def update(
        self, kind: type[R], changes: Mapping[str, Any], where: Where, beside: Sequence[Row] = ()
    ) -> list[R]:
        found = await self._store.update(kind, changes, where, beside)
        if found:
            self._changed(kind)
        return found

    async def delete(self, kind: type[Row], where: Where) -> int:
        count = await self._store.delete(kind, where)
        self._changed(kind)
        return count

    async def close(self) -> None:
        if self._saying is not None:
            self._saying.cancel()
        await self._store.close()
