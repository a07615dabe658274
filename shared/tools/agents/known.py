"""Whether there is an agent whose profile is at hand, so that it can answer a channel itself."""

from __future__ import annotations

from shared.bus.keys import is_agent
from shared.errors import ToolError
from shared.guard.processes import plan
from shared.store.records import Agent
from shared.tools import lookup
from shared.tools.context import Context


async def need(here: Context, name: str) -> Agent | None:
    """Its row, where it has one; ToolError where it cannot answer by itself."""
    row = await lookup.first(here.store, Agent, name=name)
    if row is not None and row.destroyed_at is not None:
        raise ToolError(f"the agent {name!r} was destroyed", "", "make it again with create_agent")
    if row is not None and row.profile_id is not None:
        return row
    mine = plan.own(here.repos.home) if here.repos else []
    if not is_agent(name) or name not in (*plan.AGENTS, *mine):
        raise ToolError(
            f"there is no agent {name[:80]!r} that could answer there",
            "one that is data can: a row or a folder; other programs are asked by consult_agent",
            "list_agents names them; create_agent makes one",
        )
    return row
