"""Conversations: which there are, what was said in them, and steering what runs in one."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from gateways.web.access import Line, Visitor
from shared.bus.messages import Id, SessionId, Words
from shared.client.views import visible

router = APIRouter(prefix="/api/sessions", tags=["sessions"])


class StopRequest(BaseModel):
    """Which turn, or which request of it; without either whatever runs."""

    model_config = ConfigDict(extra="forbid")

    turn_id: Id | None = None
    request_id: Id | None = None


class AmendRequest(BaseModel):
    """Words for the turn that runs."""

    model_config = ConfigDict(extra="forbid")

    content: Words
    turn_id: Id | None = None


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
