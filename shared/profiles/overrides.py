"""An agent as it is now: its folder or row, its own changes over that, and the words before every profile.

The wake-up channel of its queue, and the news that rows of profiles or settings changed, tell all its workers when
there is something new; the Store is read then, and after a gap in which such a word may have been missed. With the
Store down, or where what was written cannot be used, an agent stays as it was last read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from shared import log
from shared.errors import ConfigurationError, Missing, StoreUnavailable, ToolError
from shared.profiles import rows
from shared.profiles.profile import FILES, Profile, load
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
    """One agent as last read, and what is made of it: `make(now, base)`, base being it without its own changes.

    While `stale` is set, it is read from the Store before the next use.
    """

    def __init__(
        self,
        store: Store,
        stale: asyncio.Event,
        first: Profile,
        same: T,
        make: Callable[[Profile, Profile], T],
    ) -> None:
        self._store, self._stale = store, stale
        self._first, self._same, self._make = first, same, make
        self._profile, self._latest = first, same
        self._edited = edited(first)

    @property
    def known(self) -> T:
        """As it was last read."""
        return self._latest

    async def latest(self) -> T:
        """What is made of the profile as it is now; the same object as long as nothing changed."""
        if (stamp := edited(self._first)) != self._edited:
            self._edited = stamp
            self._stale.set()
        if not self._stale.is_set():
            return self._latest
        self._stale.clear()
        try:
            base, profile = await now(self._store, self._first)
            if profile != self._profile:
                made = self._same if profile == self._first else self._make(profile, base)
                self._profile, self._latest = profile, made
        except StoreUnavailable as error:
            self._stale.set()
            log.get().warning("The agent's own changes are taken as last read", why=str(error))
        except (
            Missing,
            ToolError,
            ConfigurationError,
        ) as error:  # gone, or written so that it cannot be used
            log.get().error("The agent's profile is taken as last read", why=str(error))
        return self._latest


def edited(profile: Profile) -> tuple[int, ...]:
    """What changes when somebody edits the folder of an agent."""
    if not profile.place:
        return ()
    found = []
    for name in FILES:
        try:
            found.append((Path(profile.place) / name).stat().st_mtime_ns)
        except OSError:
            found.append(0)
    return tuple(found)


async def now(store: Store, profile: Profile) -> tuple[Profile, Profile]:
    """A profile as it was read before, read anew: without its own changes, and with them.

    Missing where its row is gone, ToolError or ConfigurationError where it cannot be used.
    """
    base = profile
    if profile.row:
        found = await store.select(Row, {"slug": profile.row}, limit=1)
        if not found:
            raise Missing(
                f"there is no profile called {profile.row!r}", "it was deleted", "list_profiles shows them"
            )
        base = rows.of_row(found[0], profile.name).model_copy(update={"executor": profile.executor})
    elif profile.place:
        # What a worker takes in, and how much at a time, is settled when it starts.
        fixed = {"kind": profile.kind, "turns": profile.turns}
        base = (await asyncio.to_thread(load, Path(profile.place))).model_copy(update=fixed)
    base = await rows.led(store, base)
    changes = await store.select(Row, {"slug": own.slug(base.name)}, limit=1)
    return base, over(base, changes[0]) if changes else base


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
    prompt, sections = profile.prompt, profile.sections
    if texts.get(self_edit.PROMPT):  # in place of all that it was told
        prompt, sections = texts[self_edit.PROMPT], ()
    if pages:
        prompt = "\n\n".join(part for part in (prompt.strip(), "# Your own docs", *pages) if part)
    changes: dict[str, Any] = {
        "prompt": prompt,
        "sections": sections,
        "chosen_model": row.model or profile.chosen_model,
        "permissions": own.permissions(row, profile.permissions),
        "foreign": (mark(row) if row.sections else "") or profile.foreign,
    }
    return profile.model_copy(update=changes)
