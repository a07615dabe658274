"""Tools of category agent: the agents that were registered, and whether they take work."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from shared.bus.messages import RESERVED
from shared.errors import Conflict, ToolError
from shared.guard.permissions.touching import touching
from shared.guard.processes.plan import AGENTS, HOST
from shared.store.records import Agent, Repo, Task, Workspace, derived
from shared.tools import lookup
from shared.tools.agents import channels, members, models, profiles
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.detail import digest, words
from shared.tools.registry import Result

category = tier("agent")

BUSY = ("ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "VERIFYING")
RosterName = Annotated[str, Field(min_length=1, max_length=64)]
AgentKind = Literal["claude", "builtin"]


def _agent(arguments: dict[str, Any]) -> str:
    return str(arguments.get("agent_id") or arguments.get("name") or "")


@category.tool(effect="pure", touches=touching("records"))
async def list_agents(here: Context) -> Result:
    """List all configured agents and their current state."""
    known = {row.name: row for row in await here.store.select(Agent, order=[("name", "asc")])}
    roster = await here.cluster.roster() if here.cluster else {}
    told = [await _told(here, name, known.get(name)) for name in sorted({*known, *roster})]
    return {"agents": told}


async def _told(here: Context, name: str, row: Agent | None) -> dict[str, Any]:
    """An agent as it stands: by presence where there is a cluster, else by its row."""
    card: dict[str, Any] = {
        "id": name,
        "name": name,
        "type": row.kind if row else "builtin" if name in AGENTS else "unknown",
        "state": row.state if row else "offline",
    }
    if row and row.destroyed_at:
        return card | {"state": "destroyed", "current_task": None, "workspace": row.workspace}
    current = None
    if here.cluster is not None:
        seen = await here.cluster.status(name)
        current = ", ".join(seen.get("current") or []) or None
        if card["type"] == "unknown" and seen.get("kind"):
            card["type"] = str(seen["kind"])
        if not row or row.state != "paused":
            card["state"] = str(seen.get("status") or "offline")
    if current is None:
        where = {"assignee": name, "status": ("in", ["ASSIGNED", "IN_PROGRESS"])}
        tasks = await here.store.select(Task, where, order=[("updated_at", "desc")], limit=1)
        current = tasks[0].slug if tasks else None
    card["current_task"] = current
    return card | ({"workspace": row.workspace} if row and row.workspace else {})


def _made(arguments: dict[str, Any]) -> str:
    """With a name for what it is to be: permission for one agent is none for another."""
    return words(_agent(arguments), digest(arguments) if len(arguments) > 1 else "")


@category.tool(
    effect="keyed",
    detail=_made,
    touches=touching("agent", permission_mode="permission", profile_id="permission", budget="money"),
)
async def create_agent(
    here: Context,
    name: RosterName | None = None,
    agent_type: AgentKind = "claude",
    repo_id: str | None = None,
    description: profiles.ProfileText | None = None,
    system_prompt: profiles.ProfileText | None = None,
    sections: profiles.Sections | None = None,
    model: str | None = None,
    permission_mode: str | None = None,
    tools: profiles.Tools | None = None,
    categories: profiles.Tools | None = None,
    budget: profiles.Dollars | None = None,
    kind: Literal["consult", "coding"] | None = None,
    profile_id: str | None = None,
    channel: channels.ChannelName | None = None,
) -> Result:
    """Make an agent: its workspace under git, its profile and its channel. It runs and answers a moment later.

    kind coding takes tasks in worktrees (so with repo_id); consult answers questions. Without channel it has one of
    its own, promptdock:NAME. profile_id names a profile that there is.
    """
    repo: Repo | None = await lookup.repo(here, repo_id) if repo_id else None
    called = _called(name) if name else await _free(here, agent_type)
    old = await lookup.first(here.store, Agent, name=called)
    await _need_unused(here, called, old)
    place = channel or f"{members.SURFACE}:{called}"
    channels.parted(place)
    work = kind or ("coding" if repo else None)
    model = await models.kept(here, model)
    parts = [members.persona(called, system_prompt)] if system_prompt else sections
    given = profiles.NewProfile(
        None, description, work, parts, model, permission_mode, tools, categories, budget
    )
    if profile_id is None:
        profile = await members.profile_for(here, called, given, old)
    elif given.changes():
        raise ToolError(
            "a profile is named, and what it should say", f"it is {profile_id!r}", "edit_profile changes it"
        )
    else:
        profile = await lookup.profile(here.store, profile_id)
    home, folder = await members.make_workspace(here, called, description or "")
    values = {
        "kind": agent_type,
        "profile_id": profile.id,
        "project_id": repo.project_id if repo else None,
        "home": home,
        "workspace": repo.name if repo else folder,
    }
    if old is not None:
        await here.store.update(Agent, {**values, "destroyed_at": None}, {"id": old.id})
    else:
        await _insert(here, Agent(id=lookup.identity(here, "agent"), name=called, **values))
    await channels.bind_channel(here, place, agent=called)
    result: Result = {"created": called, "name": called} | ({"repo_id": repo.name} if repo else {})
    result |= {"profile_id": profile.slug, "channel": place, "workspace": folder}
    how = f"promptdock ask --agent {called}" if channel is None else f"the channel {channel}"
    return result | {"message": f"it runs a moment later: {how}, consult_agent, or its tasks"}


async def _need_unused(here: Context, name: str, old: Agent | None) -> None:
    """ToolError where there is an agent of that name, other than one that was destroyed, or that this call made."""
    if old is not None and (old.destroyed_at is not None or old.id == lookup.identity(here, "agent")):
        return
    if old is not None:
        raise ToolError(f"there is an agent {name!r} already", "", "choose another name")
    if here.cluster and name in await here.cluster.roster():
        known = await here.cluster.status(name)
        if known.get("online") or name in AGENTS:
            raise ToolError(
                f"there is an agent {name!r} already", "a worker of that name ran", "choose another"
            )


async def _insert(here: Context, row: Agent) -> None:
    try:
        await here.store.insert(row)
    except Conflict:
        raise ToolError(f"there is an agent {row.name!r} already", "", "choose another name") from None


def _called(name: str) -> str:
    """The name as agents are addressed by it, on channels and on the command line."""
    called = lookup.kebab(name)
    if not called.isascii() or not called or called in (*RESERVED, HOST):
        raise ToolError(
            f"{name!r} is no name for an agent",
            "names are plain letters, digits and hyphens, and some are taken",
            "choose another",
        )
    return called


async def _free(here: Context, kind: str) -> str:
    known = {row.name: row.id for row in await here.store.select(Agent)}
    own = lookup.identity(here, "agent")
    return next(
        name
        for name in (f"{kind}-{number}" for number in range(1, len(known) + 2))
        if name not in known or known[name] == own
    )


@category.tool(effect="idempotent", detail=_agent, touches=touching("agent"))
async def edit_agent(
    here: Context, agent_id: str, name: RosterName | None = None, agent_type: AgentKind | None = None
) -> Result:
    """Edit an agent's properties: name or agent_type."""
    row = await lookup.agent(here.store, agent_id)
    changes: dict[str, Any] = {}
    if name is not None:
        changes["name"] = lookup.kebab(name)
        if not changes["name"]:
            raise ToolError(
                f"{name!r} is no name for an agent", "it has no letter or digit", "choose another"
            )
        await _need_idle(here, row.name, "renamed")
    if agent_type is not None:
        changes["kind"] = agent_type
    if not changes:
        raise ToolError("nothing is to be changed", "no field was given", "give at least one")
    try:
        old, row = row, await lookup.change(here.store, row, **changes)
    except Conflict:
        raise ToolError(f"there is an agent {changes.get('name')!r} already", "", "choose another") from None
    if old.profile_id is not None and old.name != row.name:
        await members.rename(here, old, row.name)
    return {"updated": row.name, "fields": [{"kind": "agent_type"}.get(key, key) for key in changes]}


@category.tool(effect="idempotent", detail=_agent, touches=touching("agent"))
async def pause_agent(here: Context, agent_id: str) -> Result:
    """Pause an agent so it stops receiving new tasks. What it works on goes on."""
    row = await _known(here, agent_id)
    if row.state != "paused":
        row = await lookup.change(here.store, row, state="paused")
    return {"paused": row.name}


@category.tool(effect="idempotent", detail=_agent, touches=touching("agent"))
async def resume_agent(here: Context, agent_id: str) -> Result:
    """Resume a paused agent so it can receive tasks again."""
    row = await _known(here, agent_id)
    if row.state == "paused":
        row = await lookup.change(here.store, row, state="offline")
    return {"resumed": row.name}


async def _known(here: Context, name: str) -> Agent:
    """The agent's row; one that ships with PromptDock gets its row when it is first needed."""
    if found := await lookup.first(here.store, Agent, name=name):
        return found
    if here.cluster is None or name not in await here.cluster.roster():
        return await lookup.agent(here.store, name)
    row = Agent(id=derived("agent", name), name=name)
    await here.store.upsert([row])
    return row


@category.tool(effect="idempotent", detail=_agent, touches=touching("agent", "loss"))
async def delete_agent(here: Context, agent_id: str) -> Result:
    """Delete an agent and all its workspace mappings."""
    known = await lookup.first(here.store, Agent, name=agent_id)
    if known is None and here.cluster is not None and agent_id in await here.cluster.roster():
        await _off_the_roster(here, agent_id)
        return {"deleted": agent_id, "workspaces_freed": []}
    row = known or await lookup.agent(here.store, agent_id)
    await _need_idle(here, row.name, "deleted")
    freed = [space.name for space in await here.store.select(Workspace, {"agent": row.name})]
    told = await lookup.removing(here, {"deleted": row.name, "workspaces_freed": freed})
    await here.store.update(Workspace, {"agent": None}, {"agent": row.name})
    await here.store.delete(Agent, {"id": row.id})
    if here.cluster is not None and row.name not in AGENTS:
        await here.cluster.forget(row.name)
    return told


async def _off_the_roster(here: Context, name: str) -> None:
    """One that was never registered, but ran: it is known as long as it is on the roster."""
    await _need_idle(here, name, "deleted")
    if here.cluster is not None and not await here.cluster.forget(name):
        raise ToolError(
            f"the agent {name!r} cannot be deleted",
            "it runs, or messages lie in its queue",
            f"end it first; what lies there goes with: promptdock agents forget {name} --force",
        )


async def _need_idle(here: Context, name: str, what: str) -> None:
    where = {"assignee": name, "status": ("in", list(BUSY))}
    if busy := await here.store.select(Task, where, limit=1):
        raise ToolError(
            f"the agent {name!r} cannot be {what}", f"it works on {busy[0].slug}", "stop that task first"
        )
