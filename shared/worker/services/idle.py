"""Conversations in which nobody spoke for long are put to rest, each by a turn of its own session."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta

from shared import log
from shared.conversation import sessions
from shared.errors import PromptDockError
from shared.store.base import Order, Store
from shared.store.records import Session
from shared.store.row import derived, now
from shared.turns import requests, threads
from shared.turns.lease import Lease
from shared.worker.connection import Connection
from shared.worker.runners.inputs import REST

NAME = "idle"
_LOOK = 60.0  # seconds between two looks at most
_SOME = 100  # conversations that one look puts to rest


class IdleService:
    """One worker's part in it; `run` never ends."""

    def __init__(self, connection: Connection, store: Store, lease: Lease, agent: str, idle_ms: int) -> None:
        self._connection, self._store, self._lease, self._agent = connection, store, lease, agent
        self._idle = timedelta(milliseconds=idle_ms)
        self._passed = 0  # conversations that were looked at, and stay

    async def run(self) -> None:
        """Look each minute; with the Store down, in the next one."""
        pause = min(_LOOK, max(0.2, self._idle.total_seconds() / 4))
        while self._idle:
            await asyncio.sleep(pause)
            try:
                await self.look()
            except PromptDockError as error:
                log.get().warning("Conversations are not put to rest now", why=str(error))
        await asyncio.Event().wait()

    async def look(self) -> list[str]:
        """Ask for those that are due, unless another worker does; which they are."""
        if not await self._lease.take():
            return []
        try:
            bound = now() - self._idle
            where = {"talked": True, "last_active_at": ("lt", bound)}
            order: Order = [("last_active_at", "asc")]
            rows = await self._store.select(Session, where, order=order, limit=_SOME, offset=self._passed)
            due = [row for row in rows if await self._last_word(row) < bound]
            for row in due:
                await self._ask(row)
            # Those of channels in which people speak stay, and must not hide the others for ever.
            self._passed = self._passed + len(rows) - len(due) if len(rows) == _SOME else 0
            return [row.key for row in due]
        finally:
            with contextlib.suppress(PromptDockError):
                await self._lease.drop()

    async def _last_word(self, row: Session) -> datetime:
        """In any thread of its channel, also in one whose turn has not ended; else of its person."""
        last = await sessions.last_word(self._store, row)
        bus, names = self._connection.bus, self._connection.names
        said = await threads.last_word(bus, names, row.channel) if row.channel else None
        return max(last, said) if said else last

    async def _ask(self, row: Session) -> None:
        """Have it rest; asked again about the same silence, it is done once."""
        id = f"rest:{derived('rest', row.key, row.last_active_at.isoformat())}"
        queue = self._connection.queue(self._agent)
        await requests.to_itself(queue, id, row.key, {"command": REST, "session_id": row.key})
