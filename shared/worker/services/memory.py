"""What is done for memory beside the turns: conversations that rest are drawn from and summarised, and once a day
what is remembered is tidied."""

from __future__ import annotations

import asyncio
import time

from shared import log
from shared.errors import PromptDockError
from shared.memory import upkeep
from shared.memory.upkeep import Upkept
from shared.store.base import Store
from shared.turns.lease import Lease
from shared.worker.connection import Connection
from shared.worker.runners.chat import drawing, summary
from shared.worker.services.daily import DailyWork

NAME = "memory-upkeep"  # of the lease, and the scope of the setting that says when it was last tidied
_LOOK = 5.0  # seconds between two looks whether something is due
_TIDY = 1800.0  # seconds between two looks whether it is time to tidy, the first of them after the start


class MemoryService:
    """One worker's part in it; `run` never ends. Two that look at once begin with the same thing once."""

    def __init__(self, connection: Connection, store: Store, lease: Lease, agent: str, rest_ms: int) -> None:
        self._connection, self._store, self._agent = connection, store, agent
        self._daily = DailyWork(store, lease, NAME)
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
        done = await self._daily.do(
            lambda going: upkeep.consolidate(self._store, {}, going),
            lambda upkept: {"archived": upkept.archived},
        )
        if done and done.archived:
            log.get().info("Memories were archived", archived=done.archived)
        return done
