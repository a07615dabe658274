"""Conversations: which there are, what was said in them, and steering what runs in one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Body, Cursor, Limit
from shared.bus.messages import Id, SessionId, Words
from shared.client.views import listings, visible
from shared.client.views.conversation.transcript import transcript
from shared.client.views.pending import pending

router = APIRouter(prefix="/api/sessions", tags=["sessions"])


class StopRequest(Body):
    """Which turn, or which request of it; without either whatever runs."""

    turn_id: Id | None = None
    request_id: Id | None = None


class AmendRequest(Body):
    """Words for the turn that runs."""

    content: Words
    turn_id: Id | None = None


@router.get("")
async def listing(
    client: Line,
    visitor: Visitor,
    query: Annotated[str, Query(max_length=500)] = "",
    project: Annotated[str, Query(max_length=200)] = "",
    after: Cursor = "",
    limit: Limit = 50,
) -> dict[str, Any]:
    """Conversations that this person sees, the last used first; `query` is part of a title."""
    page = await listings.sessions(
        client, visitor.sight, query=query, project=project, after=after, limit=limit
    )
    return {"sessions": page.items, "next": page.next}


@router.get("/{session}/messages")
async def messages(
    session: SessionId, client: Line, visitor: Visitor, before: Cursor = "", limit: Limit = 40
) -> dict[str, Any]:
    """What was said, a page of it, the oldest first; `before` is the cursor of what comes above it."""
    await visible.session(client, visitor.sight, session)
    listings.moment(before)
    page = await transcript(client, session, before, limit)
    return {"messages": [asdict(entry) for entry in page.entries], "before": page.before}


@router.get("/{session}/turns")
async def turns(
    session: SessionId, client: Line, visitor: Visitor, after: Cursor = "", limit: Limit = 50
) -> dict[str, Any]:
    """Chatter's turns there, the newest first; GET /api/turns/ID has the steps of one."""
    await visible.session(client, visitor.sight, session)
    page = await listings.turns(client, session, after=after, limit=limit)
    return {"turns": page.items, "next": page.next}


@router.get("/{session}/pending")
async def waits(session: SessionId, client: Line, visitor: Visitor) -> dict[str, Any]:
    """What was said there and has not ended."""
    await visible.session(client, visitor.sight, session)
    return {"pending": [row for row in await pending(client) if row["session"] == session]}


@router.post("/{session}/stop", status_code=202)
async def stop(
    session: SessionId, client: Line, visitor: Visitor, asked: StopRequest | None = None
) -> dict[str, Any]:
    """End what runs there."""
    await visible.session(client, visitor.sight, session)
    asked = asked or StopRequest()
    sent = await client.stop(visitor.user_id, session, asked.turn_id, asked.request_id)
    return {"id": sent.id, "outcome": sent.outcome}


@router.post("/{session}/amend", status_code=202)
async def amend(session: SessionId, asked: AmendRequest, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Add words to the turn that runs there."""
    await visible.session(client, visitor.sight, session)
    sent = await client.amend(asked.content, visitor.user_id, session, asked.turn_id)
    return {"id": sent.id, "outcome": sent.outcome}
