"""The agents that are known, and messages that could not be answered."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from gateways.web.access import Line, Person, Visitor
from gateways.web.api.fields import Limit, Name
from shared.client.client import Client
from shared.client.views import agents as views
from shared.client.views import dead_letters, status, visible
from shared.errors import Missing

router = APIRouter(prefix="/api", tags=["agents"])


@router.get("/agents")
async def listing(client: Line, visitor: Visitor) -> dict[str, Any]:
    """Who is here, and what each does right now."""
    known = [one.card() for one in await views.known(client)]
    working = await status.doing(client)
    seen = [one.row() for one in working if await _may_see(client, visitor, one.activity.events)]
    return {"agents": known, "doing": seen}


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
