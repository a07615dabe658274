"""What is done for memory beside the turns: conversations that rest are drawn from."""

from __future__ import annotations

import asyncio

from shared import log
from shared.errors import PromptDockError
from shared.worker.connection import Connection
from shared.worker.runners.chat import drawing

_LOOK = 5.0  # seconds between two looks whether something is due


class MemoryService:
    """One worker's part in it; `run` never ends. Two that look at once begin with the same thing once."""

    def __init__(self, connection: Connection, agent: str, rest_ms: int) -> None:
        self._connection, self._agent = connection, agent
        self._pause = min(_LOOK, rest_ms / 1000)

    async def run(self) -> None:
        """Look now and then; without Redis, a moment later."""
        while True:
            await asyncio.sleep(self._pause)
            try:
                await drawing.begin(self._connection, self._agent)
            except PromptDockError as error:
                log.get().warning("No conversation is drawn from now", why=str(error))
