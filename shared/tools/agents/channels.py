"""Category members: channels of surfaces, bound to a project, to a note of it, or to an agent of their own."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field

from shared.errors import Missing, ToolError
from shared.guard.permissions.touching import touching
from shared.store.records import Channel, derived
from shared.tools import lookup
from shared.tools.agents import known
from shared.tools.agents.prompt import category
from shared.tools.context import Context
from shared.tools.detail import words
from shared.tools.registry import Result

_CHANNEL = re.compile(r"([a-z][a-z0-9_-]{0,31}):(\S{1,150})")
ChannelName = Annotated[str, Field(min_length=3, max_length=190)]


def parted(channel: str) -> tuple[str, str]:
    """The surface of a channel and its id there; ToolError where it names none."""
    match = _CHANNEL.fullmatch(channel)
    if match is None:
        raise ToolError(
            f"{channel[:100]!r} is no channel",
            "channels are SURFACE:ID, such as discord:123456",
            "write it so",
        )
    return match[1], match[2]


def _detail(arguments: dict[str, Any]) -> str:
    return words(*(arguments.get(name) for name in ("channel", "agent", "project_id", "note")))


@category.tool(effect="idempotent", detail=_detail, touches=touching("agent"))
async def bind_channel(
    here: Context,
    channel: ChannelName,
    agent: str | None = None,
    project_id: str | None = None,
    note: str | None = None,
) -> Result:
    """Bind a channel (discord:ID and the like): what is said there goes to that agent, that project, or into that note.

    An agent answers there itself. note is the title of a note of the project; what is said goes into it, sorted by it.
    """
    if not (agent or project_id or note):
        raise ToolError("nothing is named to bind the channel to", "", "name agent, project_id or note")
    if agent and note:
        raise ToolError("a channel is bound to an agent or to a note", "both are named", "name one of them")
    surface, id = parted(channel)
    if agent:
        await known.need(here, agent)
    project = await lookup.project_for(here, project_id) if project_id or note else None
    title = note.strip() if note else None
    if title:
        lookup.note_slug(title)
    values = {"agent": agent, "project_id": project.id if project else None, "note": title}
    row = Channel(id=derived("channel", surface, id), surface=surface, channel_id=id, **values)
    if found := await lookup.first(here.store, Channel, surface=surface, channel_id=id):
        await here.store.update(Channel, values, {"id": found.id})
    else:
        await here.store.upsert([row])
    return {"bound": channel, "agent": agent, "project_id": project.slug if project else None, "note": title}


@category.tool(effect="idempotent", detail=_detail, touches=touching("agent"))
async def unbind_channel(here: Context, channel: ChannelName) -> Result:
    """Take a channel's binding off: what is said there goes to Chatter again."""
    surface, id = parted(channel)
    found = await lookup.first(here.store, Channel, surface=surface, channel_id=id)
    if found is None:
        raise Missing(
            f"the channel {channel!r} is bound to nothing", "", "list_channels shows those that are"
        )
    told = await lookup.removing(here, {"unbound": channel, "agent": found.agent, "note": found.note})
    await here.store.update(Channel, {"agent": None, "project_id": None, "note": None}, {"id": found.id})
    return told


@category.tool(effect="pure", touches=touching("records"))
async def list_channels(here: Context) -> Result:
    """The channels that are bound, and to what."""
    slugs = await lookup.projects(here.store)
    rows = await here.store.select(Channel, order=[("surface", "asc"), ("channel_id", "asc")])
    told = [
        {
            "channel": f"{row.surface}:{row.channel_id}",
            "name": row.name,
            "agent": row.agent,
            "project_id": slugs.get(row.project_id, "") if row.project_id else None,
            "note": row.note,
        }
        for row in rows
        if row.agent or row.project_id or row.note
    ]
    return {"channels": told}
