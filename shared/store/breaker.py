"""A Store that is down is not asked again for a moment: turns go on without it instead of waiting.

What cannot be written now can often be read: a database file that somebody else writes is locked for writers only.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from shared.errors import StoreUnavailable
from shared.store.base import Found, Order, R, Store, Where
from shared.store.records import Row

T = TypeVar("T")
PAUSE = 3.0  # seconds


@dataclass
class _Closed:
    """Until when calls of one kind fail at once, and why."""

    until: float = 0.0
    why: str = ""


class Breaker(Store):
    """Wraps a Store; after it was unavailable, calls fail at once for `pause` seconds: after a write, writes only."""

    def __init__(self, store: Store, pause: float = PAUSE) -> None:
        self._store, self._pause = store, pause
        self._reads, self._writes = _Closed(), _Closed()
        self.name = store.name

    async def _read(self, call: Awaitable[T]) -> T:
        return await self._guard(call, self._reads, closes=(self._reads, self._writes))

    async def _write(self, call: Awaitable[T]) -> T:
        return await self._guard(call, self._writes, closes=(self._writes,))

    async def _guard(self, call: Awaitable[T], way: _Closed, closes: Sequence[_Closed]) -> T:
        if time.monotonic() < way.until:
            if hasattr(call, "close"):
                call.close()
            raise StoreUnavailable("the store is unavailable", way.why, "it is tried again in a moment")
        try:
            return await call
        except StoreUnavailable as error:
            for one in closes:
                one.until, one.why = time.monotonic() + self._pause, str(error)
            raise

    async def open(self) -> None:
        await self._read(self._store.open())

    async def insert(self, row: Row, beside: Sequence[Row] = ()) -> None:
        await self._write(self._store.insert(row, beside))

    async def upsert(self, rows: Sequence[Row]) -> None:
        await self._write(self._store.upsert(rows))

    async def select(
        self,
        kind: type[R],
        where: Where | None = None,
        order: Order = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        return await self._read(self._store.select(kind, where, order, limit, offset))

    async def count(self, kind: type[Row], where: Where | None = None) -> int:
        return await self._read(self._store.count(kind, where))

    async def search(
        self, kind: type[R], words: str, where: Where | None = None, limit: int = 10
    ) -> Found[R]:
        return await self._read(self._store.search(kind, words, where, limit))

    async def update(
        self, kind: type[R], changes: Mapping[str, Any], where: Where, beside: Sequence[Row] = ()
    ) -> list[R]:
        return await self._write(self._store.update(kind, changes, where, beside))

    async def delete(self, kind: type[Row], where: Where) -> int:
        return await self._write(self._store.delete(kind, where))

    async def close(self) -> None:
        await self._store.close()
