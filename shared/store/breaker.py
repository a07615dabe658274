"""A Store that is down is not asked again for a moment: turns go on without it instead of waiting."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from shared.errors import StoreUnavailable
from shared.store.base import Order, R, Store, Where
from shared.store.records import Row

T = TypeVar("T")
PAUSE = 3.0  # seconds


class Breaker(Store):
    """Wraps a Store; after it was unavailable, calls fail at once for `pause` seconds."""

    def __init__(self, store: Store, pause: float = PAUSE) -> None:
        self._store, self._pause = store, pause
        self._closed_until = 0.0
        self._why = ""
        self.name = store.name

    async def _guard(self, call: Awaitable[T]) -> T:
        if time.monotonic() < self._closed_until:
            if hasattr(call, "close"):
                call.close()
            raise StoreUnavailable("the store is unavailable", self._why, "it is tried again in a moment")
        try:
            return await call
        except StoreUnavailable as error:
            self._closed_until, self._why = time.monotonic() + self._pause, str(error)
            raise

    async def open(self) -> None:
        await self._guard(self._store.open())

    async def insert(self, row: Row, beside: Sequence[Row] = ()) -> None:
        await self._guard(self._store.insert(row, beside))

    async def upsert(self, rows: Sequence[Row]) -> None:
        await self._guard(self._store.upsert(rows))

    async def select(
        self,
        kind: type[R],
        where: Where | None = None,
        order: Order = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        return await self._guard(self._store.select(kind, where, order, limit, offset))

    async def count(self, kind: type[Row], where: Where | None = None) -> int:
        return await self._guard(self._store.count(kind, where))

    async def update(
        self, kind: type[R], changes: Mapping[str, Any], where: Where, beside: Sequence[Row] = ()
    ) -> list[R]:
        return await self._guard(self._store.update(kind, changes, where, beside))

    async def delete(self, kind: type[Row], where: Where) -> int:
        return await self._guard(self._store.delete(kind, where))

    async def close(self) -> None:
        await self._store.close()
