"""What tasks went through, as it is written down: every transition is read once, in order, by one worker."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from uuid import UUID

from shared.store.base import Store
from shared.store.records import Setting, TaskEvent
from shared.store.row import derived, now

_OVERLAP = timedelta(seconds=30)  # clocks of other workers may be behind, and rows come late
_SEEN = 20_000
BATCH = 500


class TaskLog:
    """The transitions since the last look. Where one has read to is kept, for whoever goes on."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._seen: OrderedDict[UUID, None] = OrderedDict()
        self._at: datetime | None = None
        self._kept: datetime | None = None

    async def new(self) -> list[TaskEvent]:
        """What was written since; what a worker before us read in the last seconds may come once more."""
        if self._at is None:
            self._at = self._kept = await self._resume()
        where = {"created_at": ("ge", self._at - _OVERLAP)}
        order = [("created_at", "asc")]
        rows = await self._store.select(TaskEvent, where, order=order, limit=_SEEN)  # type: ignore[arg-type]
        fresh = [row for row in rows if row.id not in self._seen][:BATCH]
        for row in fresh:
            self._seen[row.id] = None
            self._at = max(self._at, row.created_at)
        while len(self._seen) > 2 * _SEEN:
            self._seen.popitem(last=False)
        if self._kept is None or self._at - self._kept > _OVERLAP:
            await self._keep(self._at)
        return fresh

    async def _resume(self) -> datetime:
        found = await self._store.select(Setting, {"scope": "tails", "key": self._name}, limit=1)
        if found:
            return datetime.fromisoformat(str(found[0].value["at"]))
        at = now()
        for row in await self._store.select(TaskEvent, {"created_at": ("ge", at - _OVERLAP)}):
            self._seen[row.id] = None  # of before anybody read
        await self._keep(at)
        return at

    async def _keep(self, at: datetime) -> None:
        id = derived("setting", "tails", self._name)
        value = {"at": at.isoformat()}
        await self._store.upsert([Setting(id=id, scope="tails", key=self._name, value=value)])
        self._kept = at
