"""The agents that are known, made, changed and ended, and messages that could not be answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field

from gateways.web.access import Line, Person, Visitor
from gateways.web.api.fields import Body, Limit, Long, Name, NamePart
from gateways.web.api.tools import check
from gateways.web.calls import call
from shared.client.client import Client
from shared.client.views import agents as views
from shared.client.views import dead_letters, status, visible
from shared.errors import Missing

router = APIRouter(prefix="/api", tags=["agents"])
Names = Annotated[list[NamePart], Field(max_length=300)]


class AgentFields(Body):
    """What an agent that is a row is made of; docs/agents.md says what each means."""

    description: str | None = None
    system_prompt: Long | None = None
    sections: list[dict[str, Any]] | None = Field(None, description="Each `{name, text, title?, enabled?}`.")
    model: NamePart | None = None
    permission_mode: NamePart | None = None
    tools: Names | None = None
    categories: Names | None = None
    budget: float | None = None
    profile_id: NamePart | None = None


class NewAgent(AgentFields):
    """A new one: `kind` is `consult`, or `coding` with a repository."""

    name: NamePart
    kind: Literal["consult", "coding"] | None = None
    repo_id: NamePart | None = None
    channel: NamePart | None = None


class AgentChange(AgentFields):
    """What is to be different."""

    limits: dict[str, Any] | None = None


@router.get("/agents")
async def listing(client: Line, visitor: Visitor) -> dict[str, Any]:
    """Who is here, and what each does right now."""
    known = [one.card() for one in await views.known(client)]
    working = await status.doing(client)
    seen = [one.row() for one in working if await _may_see(client, visitor, one.activity.events)]
    return {"agents": known, "doing": seen}


@router.post("/agents", status_code=201)
async def create(asked: NewAgent, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Make one that is a row; it answers a moment later."""
    check(visitor, "create_agent")
    return await call(client, visitor, "create_agent", asked.model_dump(exclude_none=True))


@router.get("/agents/{agent}")
async def one(agent: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """One of them, and what its model is sent, part by part."""
    check(visitor, "show_prompt")
    known = next((found.card() for found in await views.known(client) if found.name == agent), {})
    return {**known, "prompt": await call(client, visitor, "show_prompt", {"agent_id": agent})}


@router.patch("/agents/{agent}")
async def configure(agent: Name, asked: AgentChange, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Change one that is a row, from its next turn on."""
    check(visitor, "configure_agent")
    words = {"agent_id": agent, **asked.model_dump(exclude_none=True)}
    return await call(client, visitor, "configure_agent", words)


@router.delete("/agents/{agent}")
async def destroy(agent: Name, client: Line, visitor: Visitor, keep_files: bool = True) -> dict[str, Any]:
    """End one that is a row. Its files stay, so that one of the same name finds them, unless that is not wanted."""
    check(visitor, "destroy_agent")
    words = {"agent_id": agent, "keep_files": keep_files}
    return await call(client, visitor, "destroy_agent", words)


async def _may_see(client: Client, person: Person, session: str) -> bool:
    if person.owner or not session:
        return person.owner
    try:
        await visible.session(client, person.sight, session)
    except Missing:
        return False
    return True


@router.get("/dead-letters")
async def letters(client: Line, visitor: Visitor, limit: Limit = 100) -> dict[str, Any]:
    """Messages that could not be answered, the newest first, each with the reason."""
    visible.owner(visitor.sight, "what could not be answered")
    return {"dead_letters": [one.card() for one in await dead_letters.letters(client, limit)]}


@router.post("/dead-letters/{agent}/{entry}/replay", status_code=202)
async def replay(agent: Name, entry: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Send one again."""
    visible.owner(visitor.sight, "what could not be answered")
    sent = await dead_letters.replay(client, f"{agent}/{entry}")
    return {"id": sent.id, "outcome": sent.outcome}


@router.delete("/dead-letters/{agent}/{entry}")
async def drop(agent: Name, entry: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Away with one."""
    visible.owner(visitor.sight, "what could not be answered")
    return {"dropped": await dead_letters.drop(client, f"{agent}/{entry}")}
