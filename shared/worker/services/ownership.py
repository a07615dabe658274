"""Whose the sessions of the release before are: the Store knows it, Redis is told once.

Since then each session belongs to whom its first message is from; a script notes that when it accepts it.
"""

from __future__ import annotations

import asyncio

from shared import log
from shared.bus.keys import CHATTER
from shared.bus.messages import PLAIN
from shared.errors import PromptDockError
from shared.store.base import Store
from shared.store.records import Session
from shared.worker.connection import Connection

_PAGE = 500
_PAUSE = 2.0


async def learn(connection: Connection, store: Store) -> None:
    """Tell Redis, unless that was done; with the Store down, when it is there again."""
    while True:
        try:
            await _learn(connection, store)
            return
        except PromptDockError as error:
            log.get().debug("Whose the sessions are is not known yet", why=str(error))
            await asyncio.sleep(_PAUSE)


async def _learn(connection: Connection, store: Store) -> None:
    keys = connection.names.keys(CHATTER)
    if await connection.bus.command("GET", keys.owners_known):
        return
    after = ""
    while True:
        rows = await store.select(Session, {"key": ("gt", after)}, order=[("key", "asc")], limit=_PAGE)
        owned = [row for row in rows if row.user_id and not row.key.startswith(PLAIN)]
        await asyncio.gather(
            *(connection.bus.command("SET", keys.owner(row.key), f"s:{row.user_id}", "NX") for row in owned)
        )
        if len(rows) < _PAGE:
            break
        after = rows[-1].key
    await connection.bus.command("SET", keys.owners_known, 1)
