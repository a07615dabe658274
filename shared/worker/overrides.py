"""An agent's own changes of itself, over what its folder says: read when a turn begins, so that no restart is needed.

The bell of its desk tells all workers of an agent when there are new ones; the Store is read then, and after a gap
in which a bell may have been missed. With the Store down, an agent stays as it was last read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from shared import log
from shared.errors import StoreUnavailable
from shared.profiles.profile import Profile
from shared.store.origin import mark
from shared.store.records import ProfileRow as Row
from shared.tools.agents import own, self_edit
from shared.worker.resources import Resources

T = TypeVar("T")


async def changed(parts: Resources, agent: str) -> None:
    """Let all workers of an agent read its changes anew, this one included."""
    parts.stale = True
    await parts.bus.publish(parts.desk(agent).bell, json.dumps({"changed": agent}).encode())


class Overrides(Generic[T]):
    """The changes of one agent as last read, and what is made of its profile with them."""

    def __init__(self, folder: Profile, first: T, make: Callable[[Profile], T]) -> None:
        self._folder, self._first, self._make = folder, first, make
        self._latest = first

    @property
    def known(self) -> T:
        """As it was last read."""
        return self._latest

    async def latest(self, parts: Resources) -> T:
        """What is made of the profile as it is now; the same object as long as nothing changed."""
        if not parts.stale:
            return self._latest
        parts.stale = False
        try:
            found = await parts.store.select(Row, {"slug": own.slug(self._folder.name)}, limit=1)
        except StoreUnavailable as error:
            parts.stale = True
            log.get().warning("The agent's own changes are taken as last read", why=str(error))
            return self._latest
        self._latest = self._make(over(self._folder, found[0])) if found else self._first
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
