"""What is done for memory beside the turns: conversations that rest are drawn from and summarised, and once a day
what is remembered is tidied."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import datetime, timedelta

from shared import log
from shared.errors import PromptDockError
from shared.memory import upkeep
from shared.memory.upkeep import Upkept
from shared.store.base import Store
from shared.store.records import Setting, derived
from shared.store.row import now
from shared.turns.lease import Lease
from shared.worker.connection import Connection
from shared.worker.runners.chat import drawing, summary

NAME = "memory-upkeep"  # of the lease, and the scope of the setting that says when it was last tidied
_LOOK = 5.0  # seconds between two looks whether something is due
_TIDY = 1800.0  # seconds between two looks whether it is time to tidy, the first of them after the start
_EVERY = timedelta(hours=20)
_REST = 0.05  # seconds between two pages: others want the Store too


class MemoryService:
    """One worker's part in it; `run` never ends. Two that look at once begin with the same thing once."""

    def __init__(self, connection: Connection, store: Store, lease: Lease, agent: str, rest_ms: int) -> None:
        self._connection, self._store, self._lease, self._agent = connection, store, lease, agent
        self._pause = min(_LOOK, rest_ms / 1000)

    async def run(self) -> None:
        """Look now and then; without Redis or the Store, a moment later."""
        looked = time.monotonic()
        while True:
            await asyncio.sleep(self._pause)
            try:
                await drawing.begin(self._connection, self._agent)
                await summary.begin(self._connection)
                if time.monotonic() - looked > _TIDY:
                    looked = time.monotonic()
                    await self.tidy()
            except PromptDockError as error:
                log.get().warning("Nothing is done for memory now", why=str(error))

    async def tidy(self) -> Upkept | None:
        """Archive what need not be recalled, unless that was done today or another worker does it."""
        if not await self._lease.take():
            return None
        try:
            last = await self._store.select(Setting, {"scope": NAME, "key": "last"}, limit=1)
            if last and now() - datetime.fromisoformat(str(last[0].value["at"])) < _EVERY:
                return None
            done = await upkeep.consolidate(self._store, {}, self._going)
            if await self._going():
                value = {"at": now().isoformat(), "archived": done.archived}
                row = Setting(id=derived("setting", NAME, "last"), scope=NAME, key="last", value=value)
                await self._store.upsert([row])
            if done.archived:
                log.get().info("Memories were archived", archived=done.archived)
            return done
        finally:
            with contextlib.suppress(PromptDockError):
                await self._lease.drop()

    async def _going(self) -> bool:
        await asyncio.sleep(_REST)
        return bool(await self._lease.take())
