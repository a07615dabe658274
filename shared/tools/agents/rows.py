"""Tools of category agent: the agents that were registered, and whether they take work."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from shared.bus.messages import RESERVED
from shared.errors import Conflict, ToolError
from shared.guard.permissions.touching import touching
from shared.guard.processes.plan import AGENTS
from shared.store.records import Agent, Repo, Task, Workspace, derived
from shared.tools import lookup
from shared.tools.categories import tier
from shared.tools.context import Context
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


@category.tool(effect="keyed", detail=_agent, touches=touching("agent"))
async def create_agent(
    here: Context,
    name: RosterName | None = None,
    agent_type: AgentKind = "claude",
    repo_id: str | None = None,
) -> Result:
    """Register a new agent that can work on tasks; a worker of that name has to be started for it."""
    repo: Repo | None = await lookup.repo(here, repo_id) if repo_id else None
    called = _called(name) if name else await _free(here, agent_type)
    if here.cluster and called in await here.cluster.roster():
        raise ToolError(
            f"there is an agent {called!r} already", "a worker of that name ran", "choose another"
        )
    row = Agent(
        id=lookup.identity(here, "agent"),
        name=called,
        kind=agent_type,
        project_id=repo.project_id if repo else None,
        workspace=repo.name if repo else None,
    )
    found = await lookup.first(here.store, Agent, name=called)
    if found is None or found.id != row.id:
        try:
            await here.store.insert(row)
        except Conflict:
            raise ToolError(f"there is an agent {called!r} already", "", "choose another name") from None
    result: Result = {"created": called, "name": called} | ({"repo_id": repo.name} if repo else {})
    return result | {"message": f"it takes work once a worker runs: python -m agents --name {called}"}


def _called(name: str) -> str:
    """The name as agents are addressed by it, on channels and on the command line."""
    called = lookup.kebab(name)
    if not called.isascii() or not called or called in RESERVED:
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
        row = await lookup.change(here.store, row, **changes)
    except Conflict:
        raise ToolError(f"there is an agent {changes.get('name')!r} already", "", "choose another") from None
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
