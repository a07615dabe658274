"""Log lines of level warning up become rows: kept in memory for a second, then handed to the archive."""

from __future__ import annotations

import asyncio
from typing import Any

from shared.errors import PromptDockError
from shared.store.records import Log
from shared.turns.outbox import Outbox

_MOST = 1000  # lines that are kept while Redis is away


class LogShipping:
    """`take` is the sink of the log."""

    def __init__(self, archive: Outbox, agent: str) -> None:
        self._archive, self._agent = archive, agent
        self._lines: list[Log] = []

    def take(self, level: str, message: str, fields: dict[str, Any]) -> None:
        """Keep one line."""
        if len(self._lines) >= _MOST or fields.get("agent", self._agent) != self._agent:
            return  # another agent of this process ships its own
        plain = {
            key: value if isinstance(value, str | int | float | bool) else str(value)
            for key, value in fields.items()
        }
        name = "error" if level in ("exception", "critical") else level
        self._lines.append(Log(agent=self._agent, level=name, message=message[:2000], metadata=plain))

    async def run(self) -> None:
        """Hand over what was kept, each second."""
        while True:
            await asyncio.sleep(1)
            await self.flush()

    async def flush(self) -> None:
        """Hand over what was kept; what cannot be handed over is kept on."""
        rows, self._lines = self._lines, []
        try:
            await self._archive.put(rows)
        except PromptDockError:
            self._lines = [*rows, *self._lines][:_MOST]
