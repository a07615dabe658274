"""Rows that are too old are deleted, once a day, by one Chatter under a lease."""

from __future__ import annotations

import asyncio

from shared import log
from shared.errors import PromptDockError
from shared.store import retention
from shared.store.base import Store
from shared.store.row import now
from shared.turns.lease import Lease
from shared.worker.services.daily import DailyWork

_FIRST = 300.0  # seconds after the start of a worker
_LOOK = 3600.0  # seconds between two looks whether it is time
NAME = "retention"


class RetentionService:
    """One worker's part in it; `run` never ends."""

    def __init__(self, store: Store, lease: Lease, days: dict[str, int]) -> None:
        self._store, self._daily = store, DailyWork(store, lease, NAME)
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
        found = await self._daily.do(
            lambda going: retention.sweep(self._store, now(), self._days, going),
            lambda deleted: {"deleted": deleted},
        )
        if found:
            log.get().info("Old rows were deleted", **found)
        return found or {}
