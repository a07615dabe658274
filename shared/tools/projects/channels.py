"""Tools of category project: the channel of Discord in which a project is talked about."""

from __future__ import annotations

from typing import Any

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.store.records import Channel, Project, derived
from shared.tools import lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.registry import Result

category = tier("project")

DISCORD = "discord"


def _project(arguments: dict[str, Any]) -> str:
    return str(arguments.get("project_id") or "")


async def link_channel(here: Context, project: Project, channel_id: str | None) -> None:
    """Make this the project's one channel of Discord; None for no channel."""
    if channel_id is not None and not (
        channel_id.isascii() and channel_id.isdigit() and len(channel_id) < 21
    ):
        raise ToolError(f"{channel_id[:50]!r} is no id of a Discord channel", "ids are numbers", "look it up")
    for old in await here.store.select(Channel, {"surface": DISCORD, "project_id": project.id}):
        if old.channel_id != channel_id and old.note is None:
            await here.store.update(Channel, {"project_id": None}, {"id": old.id})
    if channel_id is None:
        return
    found = await lookup.first(here.store, Channel, surface=DISCORD, channel_id=channel_id)
    if found:
        await here.store.update(Channel, {"project_id": project.id}, {"id": found.id})
        return
    id = derived("channel", DISCORD, channel_id)
    row = Channel(id=id, surface=DISCORD, channel_id=channel_id, project_id=project.id)
    await here.store.upsert([row])


@category.tool(effect="pure", detail=_project, touches=touching("records"))
async def get_project_channels(here: Context, project_id: str) -> Result:
    """Get the Discord channel ID configured for a project."""
    row = await lookup.project(here.store, project_id)
    rows = await here.store.select(Channel, {"surface": DISCORD, "project_id": row.id, "note": None})
    return {"project_id": row.slug, "channel_id": rows[0].channel_id if rows else None}


@category.tool(
    effect="pure", detail=lambda arguments: str(arguments.get("channel_id", "")), touches=touching("records")
)
async def get_project_for_channel(here: Context, channel_id: str) -> Result:
    """Reverse lookup: given a Discord channel ID, find which project it belongs to."""
    found = await lookup.first(here.store, Channel, surface=DISCORD, channel_id=channel_id)
    owner = (
        await lookup.first(here.store, Project, id=found.project_id) if found and found.project_id else None
    )
    slug, name = (owner.slug, owner.name) if owner else (None, None)
    return {"channel_id": channel_id, "project_id": slug, "project_name": name}


# Older spellings ----------------------------------------------------------------------------------


@category.tool(effect="idempotent", detail=_project, older=True, touches=touching("records"))
async def set_project_channel(here: Context, project_id: str, channel_id: str) -> Result:
    """Link a Discord channel to a project."""
    row = await lookup.project(here.store, project_id)
    await link_channel(here, row, channel_id)
    return {"project_id": row.slug, "channel_id": channel_id, "status": "linked"}


@category.tool(effect="idempotent", detail=_project, older=True, touches=touching("records"))
async def set_control_interface(here: Context, project_id: str, channel_name: str) -> Result:
    """Set a project's Discord channel by the channel's name."""
    name = channel_name.strip().removeprefix("#")
    rows = await here.store.select(Channel, {"surface": DISCORD, "name": name}, limit=2)
    if len(rows) != 1:
        raise ToolError(
            f"the channel {name!r} is not known" if not rows else f"several channels are called {name!r}",
            "channels are known once somebody has written in them",
            "give its id with set_project_channel",
        )
    return await set_project_channel(here, project_id, rows[0].channel_id)
