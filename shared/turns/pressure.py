"""Whether Redis has room. Where it has not, nothing new is accepted until there is some again.

Two things fill it: whatever else lies there, and rows that wait for a Store that is down for long.
"""

from __future__ import annotations

import asyncio
import contextlib

from shared import log
from shared.errors import PromptDockError
from shared.turns.queue import Queue

WARN, FULL = 0.7, 0.85  # shares of its maxmemory
WAITING = 50_000  # outbox entries of one queue, a few KiB each: without a maxmemory this is the bound
_PAUSE = 5.0


class Pressure:
    """Watches it for one queue; `look` sets and lifts the mark that makes the queue answer `busy`."""

    def __init__(self, queue: Queue, waiting: int = WAITING) -> None:
        self._queue, self._waiting = queue, waiting
        self._warned = False

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with contextlib.suppress(PromptDockError):
                await self.look()
            await asyncio.sleep(_PAUSE)

    async def look(self) -> None:
        """Once."""
        bus, keys = self._queue.bus, self._queue.keys
        info, length, size = await asyncio.gather(
            bus.command("INFO", "memory"), bus.command("XLEN", keys.outbox), self._queue.size()
        )
        info = info.decode()
        figures = dict(line.split(":", 1) for line in info.split("\r\n") if ":" in line)
        limit = int(figures.get("maxmemory", 0))
        used = int(figures["used_memory"]) / limit if limit else 0.0
        waiting = int(length) / self._waiting
        # Where nothing waits of anybody, a count that went wrong is put right.
        gone = [] if size else [keys.load]
        if max(used - FULL, waiting - 1) > 0:
            await bus.command("SET", keys.full, f"{used:.2f}", "PX", int(2000 * _PAUSE))
        else:
            gone.append(keys.full)
        if gone:
            await bus.command("DEL", *gone)
        tight = used > WARN or waiting > WARN
        if tight and not self._warned:
            log.get().warning("Redis is filling up", used=f"{used:.0%}", waits_for_store=f"{waiting:.0%}")
        self._warned = tight
