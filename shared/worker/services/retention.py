"""Rows that are too old are deleted, once a day, by one Chatter under a lease."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta

from shared import log
from shared.errors import PromptDockError
from shared.store import retention
from shared.store.base import Store
from shared.store.records import Setting
from shared.store.row import derived, now
from shared.turns.lease import Lease

_FIRST = 300.0  # seconds after the start of a worker
_LOOK = 3600.0  # seconds between two looks whether it is time
_EVERY = timedelta(hours=20)
_REST = 0.05  # seconds between two writes: others want the Store too
NAME = "retention"


class RetentionService:
    """One worker's part in it; `run` never ends."""

    def __init__(self, store: Store, lease: Lease, days: dict[str, int]) -> None:
        self._store, self._lease = store, lease
        self._days = days  # that rows of a table are kept, by its name

    async def run(self) -> None:
        """Look each hour; with the Store down, in the next one."""
        await asyncio.sleep(_FIRST)
        while True:
            try:
                await self.look()
            except PromptDockError as error:
                log.get().warning("Old rows are not deleted now", why=str(error))
            await asyncio.sleep(_LOOK)

    async def look(self) -> dict[str, int]:
        """Delete what is too old, unless that was done today or another worker does it; how many of each table."""
        if not await self._lease.take():
            return {}
        try:
            store, at = self._store, now()
            last = await store.select(Setting, {"scope": NAME, "key": "last"}, limit=1)
            if last and at - datetime.fromisoformat(str(last[0].value["at"])) < _EVERY:
                return {}
            found = await retention.sweep(store, at, self._days, self._going)
            if await self._going():
                id, value = derived("setting", NAME, "last"), {"at": at.isoformat(), "deleted": found}
                await store.upsert([Setting(id=id, scope=NAME, key="last", value=value)])
            if found:
                log.get().info("Old rows were deleted", **found)
            return found
        finally:
            with contextlib.suppress(PromptDockError):
                await self._lease.drop()

    async def _going(self) -> bool:
        await asyncio.sleep(_REST)
        return bool(await self._lease.take())
