"""An agent's own changes of itself, over what its folder says: read when a turn begins, so that no restart is needed.

The wake-up channel of its queue tells all workers of an agent when there are new ones; the Store is read then, and
after a gap in which a wake-up may have been missed. With the Store down, an agent stays as it was last read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from shared import log
from shared.errors import StoreUnavailable
from shared.profiles.profile import Profile
from shared.store.base import Store
from shared.store.origin import mark
from shared.store.records import ProfileRow as Row
from shared.tools.agents import own, self_edit
from shared.turns.queue import Queue

T = TypeVar("T")


async def changed(queue: Queue, stale: asyncio.Event) -> None:
    """Let all workers of the agent with this queue read its changes anew, this one included."""
    stale.set()
    await queue.bus.publish(queue.wake_up, json.dumps({"changed": queue.agent}).encode())


class Overrides(Generic[T]):
    """The changes of one agent as last read, and what is made of its profile with them.

    While `stale` is set, they are read from the Store before the next use.
    """

    def __init__(
        self, store: Store, stale: asyncio.Event, folder: Profile, first: T, make: Callable[[Profile], T]
    ) -> None:
        self._store, self._stale = store, stale
        self._folder, self._first, self._make = folder, first, make
        self._latest = first

    @property
    def known(self) -> T:
        """As it was last read."""
        return self._latest

    async def latest(self) -> T:
        """What is made of the profile as it is now; the same object as long as nothing changed."""
        if not self._stale.is_set():
            return self._latest
        self._stale.clear()
        try:
            rows = await self._store.select(Row, {"slug": own.slug(self._folder.name)}, limit=1)
        except StoreUnavailable as error:
            self._stale.set()
            log.get().warning("The agent's own changes are taken as last read", why=str(error))
            return self._latest
        self._latest = self._make(over(self._folder, rows[0])) if rows else self._first
        return self._latest


def over(profile: Profile, row: Row) -> Profile:
    """The profile with these changes."""
    texts = {
        str(part.get("name")): str(part.get("text")) for part in row.sections if part.get("enabled", True)
    }
    pages = [
        f"## {name.removeprefix(self_edit.DOC)}\n\n{text.strip()}"
        for name, text in sorted(texts.items())
        if name.startswith(self_edit.DOC)
    ]
    prompt = texts.get(self_edit.PROMPT) or profile.prompt
    if pages:
        prompt = "\n\n".join([prompt.strip(), "# Your own docs", *pages])
    changes: dict[str, Any] = {
        "prompt": prompt,
        "chosen_model": row.model,
        "permissions": own.permissions(row, profile.permissions),
        "foreign": mark(row) if row.sections else "",
    }
    return profile.model_copy(update=changes)
