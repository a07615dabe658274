"""A Store that counts what it is asked, by call and table, and fails as often as it is told to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from shared.errors import StoreUnavailable
from shared.store.base import Found, Order, R, Store, Where
from shared.store.records import Row


class Counting(Store):
    """Wraps a Store; `calls` may be cleared."""

    def __init__(self, store: Store) -> None:
        self._store, self.name = store, store.name
        self.calls: Counter[str] = Counter()
        self.failing = 0  # the next so many calls

    def _count(self, call: str, *kinds: type[Row]) -> None:
        self.calls.update(f"{call} {kind.table}" for kind in kinds)
        if self.failing:
            self.failing -= 1
            raise StoreUnavailable("the store is away")

    async def open(self) -> None:
        await self._store.open()

    async def insert(self, row: Row, beside: Sequence[Row] = ()) -> None:
        self._count("insert", type(row))
        await self._store.insert(row, beside)

    async def upsert(self, rows: Sequence[Row]) -> None:
        self._count("upsert", *{type(row) for row in rows})
        await self._store.upsert(rows)

    async def select(
        self,
        kind: type[R],
        where: Where | None = None,
        order: Order = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[R]:
        self._count("select", kind)
        return await self._store.select(kind, where, order, limit, offset)

    async def count(self, kind: type[Row], where: Where | None = None) -> int:
        self._count("count", kind)
        return await self._store.count(kind, where)

    async def search(
        self, kind: type[R], words: str, where: Where | None = None, limit: int = 10
    ) -> Found[R]:
        self._count("search", kind)
        return await self._store.search(kind, words, where, limit)

    async def update(
        self, kind: type[R], changes: Mapping[str, Any], where: Where, beside: Sequence[Row] = ()
    ) -> list[R]:
        self._count("update", kind)
        return await self._store.update(kind, changes, where, beside)

    async def delete(self, kind: type[Row], where: Where) -> int:
        self._count("delete", kind)
        return await self._store.delete(kind, where)

    async def close(self) -> None:
        await self._store.close()
