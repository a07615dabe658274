"""A Store whose changes are heard at once by whoever acts on them: the scheduler and the hooks need not look."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared import log
from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.errors import PromptDockError
from shared.store.base import Found, Order, R, Store, Where
from shared.store.records import (
    Agent,
    Hook,
    HookRun,
    ProfileRow,
    Project,
    Repo,
    Row,
    Setting,
    Subscription,
    Task,
    TaskDependency,
    TaskEvent,
)

_HEARD = (
    Task,
    TaskDependency,
    TaskEvent,
    Project,
    Repo,
    ProfileRow,
    Agent,
    Setting,
    Hook,
    HookRun,
    Subscription,
)
_AGAIN = 1.0  # seconds until what could not be said is said again


class AnnouncingStore(Store):
    """Wraps a Store. It says the names of tables; nobody's write ever waits for that."""

    def __init__(self, store: Store, bus: Bus, names: Names) -> None:
        self._store, self._bus, self._channel = store, bus, names.board
        self.name = store.name
        self._due: set[str] = set()
        self._saying: asyncio.Task[None] | None = None

    def _changed(self, *kinds: type[Row]) -> None:
        if told := {kind.table for kind in kinds if issubclass(kind, _HEARD)}:
            self._due |= told  # also while one is under way, which may have been heard before this change
            if self._saying is None or self._saying.done():
                self._saying = asyncio.create_task(self._say())

    async def _say(self) -> None:
        while self._due:
            told, self._due = self._due, set()
            try:
                await self._bus.publish(self._channel, " ".join(sorted(told)))
            except PromptDockError as error:
                log.get().debug("That rows changed was not said", why=str(error))
                self._due |= told
                await asyncio.sleep(_AGAIN)

    async def open(self) -> None:
        await self._store.open()

    @contextlib.contextmanager
    def _telling(self, *kinds: type[Row]) -> Iterator[None]:
        """Say it also where the call failed: a write whose answer was lost may have been made."""
        try:
            yield
        finally:
            self._changed(*kinds)

    async def insert(self, row: Row, beside: Sequence[Row] = ()) -> None:
        with self._telling(type(row), *map(type, beside)):
            await self._store.insert(row, beside)

    async def upsert(self, rows: Sequence[Row]) -> None:
        with self._telling(*map(type, rows)):
            await self._store.upsert(rows)

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

    async def search(
        self, kind: type[R], words: str, where: Where | None = None, limit: int = 10
    ) -> Found[R]:
        return await self._store.search(kind, words, where, limit)

    async def update(
        self, kind: type[R], changes: Mapping[str, Any], where: Where, beside: Sequence[Row] = ()
    ) -> list[R]:
        kinds: tuple[type[Row], ...] = (kind, *map(type, beside))
        try:
            found = await self._store.update(kind, changes, where, beside)
        except BaseException:
            self._changed(*kinds)
            raise
        if found:
            self._changed(*kinds)
        return found

    async def delete(self, kind: type[Row], where: Where) -> int:
        with self._telling(kind):
            return await self._store.delete(kind, where)

    async def close(self) -> None:
        if self._saying is not None:
            self._saying.cancel()
        await self._store.close()
