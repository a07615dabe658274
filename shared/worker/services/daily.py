"""What is done once a day, by one worker under a lease; the Store says when it was done last."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from shared.errors import PromptDockError
from shared.store.base import Store
from shared.store.records import Setting
from shared.store.row import derived, now
from shared.turns.lease import Lease

_EVERY = timedelta(hours=20)
_REST = 0.05  # seconds between two writes: others want the Store too
T = TypeVar("T")


class DailyWork:
    """One kind of it; `name` is the scope of the setting that says when it was done."""

    def __init__(self, store: Store, lease: Lease, name: str) -> None:
        self._store, self._lease, self._name = store, lease, name

    async def do(
        self,
        work: Callable[[Callable[[], Awaitable[bool]]], Awaitable[T]],
        noted: Callable[[T], dict[str, Any]],
    ) -> T | None:
        """Do it, unless that was done today or another worker does it: then None.

        `work` is handed what it awaits between two writes, False once another worker has the lease.
        """
        if not await self._lease.take():
            return None
        try:
            at = now()
            last = await self._store.select(Setting, {"scope": self._name, "key": "last"}, limit=1)
            if last and at - datetime.fromisoformat(str(last[0].value["at"])) < _EVERY:
                return None
            done = await work(self._going)
            if await self._going():
                value = {"at": at.isoformat(), **noted(done)}
                id = derived("setting", self._name, "last")
                await self._store.upsert([Setting(id=id, scope=self._name, key="last", value=value)])
            return done
        finally:
            with contextlib.suppress(PromptDockError):
                await self._lease.drop()

    async def _going(self) -> bool:
        await asyncio.sleep(_REST)
        return bool(await self._lease.take())
