"""Profiles by their names, as they are now: of folders and rows, with agents' own edits over them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from shared.errors import Missing, ToolError
from shared.profiles import overrides, profile, rows
from shared.profiles.profile import Profile
from shared.store.base import Store
from shared.store.records import Agent, ProfileRow
from shared.tools.agents import own
from shared.tools.agents import workspace as workspaces
from shared.tools.context import Root
from shared.worker.resources import Resources

__all__ = ["Profile"]

_ROUNDS = 10  # of a conversation, where neither profile says another number


async def named(store: Store, home: Path, name: str) -> tuple[Profile, Profile]:
    """The profile of that id, or of the agent whose folder has that name, and the same without its own edits."""
    found = await store.select(ProfileRow, {"slug": name}, limit=1)
    if found and not name.startswith(own.PREFIX):
        base = rows.of_row(found[0])
    elif folder := profile.find(home, name) if _plain(name) else None:
        base = await asyncio.to_thread(profile.load, folder)
    else:
        there = [row.slug for row in await store.select(ProfileRow, order=[("slug", "asc")])]
        known = [slug for slug in there if not slug.startswith(own.PREFIX)]
        raise Missing.named("profile", name, known)
    return await _now(store, base)


async def of_agent(store: Store, home: Path, name: str) -> tuple[Agent | None, Profile, Profile]:
    """An agent's row, where it has one, its profile, and the same without its own edits."""
    found = await store.select(Agent, {"name": name}, limit=1)
    row = found[0] if found else None
    if row is not None and row.destroyed_at is not None:
        raise ToolError(f"the agent {name!r} was destroyed", "", "make it again with create_agent")
    if row is None or row.profile_id is None:
        try:
            return row, *await named(store, home, name)
        except Missing as error:
            fix = "promptdock agents list shows those that there are"
            raise Missing(f"there is no agent called {name!r}", "", fix) from error
    kept = await store.select(ProfileRow, {"id": row.profile_id}, limit=1)
    if not kept:
        raise Missing(
            f"the profile of the agent {name!r} is gone", "it was deleted", "give it one: configure_agent"
        )
    return row, *await _now(store, rows.of_row(kept[0], name))


async def _now(store: Store, base: Profile) -> tuple[Profile, Profile]:
    base, found = await overrides.now(store, base)
    return found, base


def _plain(name: str) -> bool:
    return "/" not in name and not name.startswith(".")


def talking(found: Profile, answering: Profile) -> Profile:
    """The profile in a conversation that `answering` would carry on otherwise."""
    rounds = found.rounds or answering.rounds or _ROUNDS
    return found.model_copy(update={"kind": "chat", "rounds": rounds, "answer_tool": None})


def workspace(resources: Resources, row: Agent) -> Root | None:
    """The folder of an agent that is a row, where it lies on this home."""
    folder = workspaces.folder(resources.settings.home, row.name)
    if row.home != resources.home or not folder.is_dir():
        return None
    return Root(workspaces.NAME, folder, writable=True)
