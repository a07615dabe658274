"""What is remembered of this person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Body, Limit, Long, Name
from gateways.web.calls import call
from shared.bus.messages import SessionId
from shared.client.types import Card
from shared.client.views import memory as views
from shared.client.views import visible

Kind = Literal["turn", "fact", "entity", "strategy", "goal"]
router = APIRouter(prefix="/api", tags=["memory"])


class Correction(Body):
    """What is right."""

    text: Long


@router.get("/memory")
async def listing(
    client: Line,
    visitor: Visitor,
    query: Annotated[str, Query(max_length=500)] = "",
    kind: Kind | None = None,
    project: Annotated[str | None, Query(max_length=200)] = None,
    session: SessionId | None = None,
    limit: Limit = 50,
) -> dict[str, list[Card]]:
    """Of this person, the newest first; with a query what fits it, the best first, in all or in one conversation."""
    if project and not visitor.owner:
        await visible.project(client, visitor.sight, project)
    if query.strip():
        found = await views.search(client, query, visitor.user_id, session, project, limit)
    else:
        found = await views.listed(client, visitor.user_id, kind, project, False, limit)
    return {"memories": found}


@router.get("/memory/{memory}")
async def one(memory: Name, client: Line, visitor: Visitor) -> Card:
    """One of them, with where it comes from."""
    return await views.one(client, visitor.user_id, memory)


@router.patch("/memory/{memory}")
async def correct(memory: Name, asked: Correction, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Put it right."""
    found = await views.one(client, visitor.user_id, memory)
    return await call(client, visitor, "correct_memory", {"memory_id": found["id"], "text": asked.text})


@router.delete("/memory/{memory}")
async def forget(memory: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Forget it."""
    found = await views.one(client, visitor.user_id, memory)
    return await call(client, visitor, "forget_memory", {"memory_id": found["id"]})


@router.get("/turns/{turn}/memory")
async def why(turn: Name, client: Line, visitor: Visitor) -> Card:
    """What was remembered for the answer of a turn of theirs."""
    return await views.why(client, visitor.user_id, turn)
