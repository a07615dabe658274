"""Turns after the fact: the steps of one, over all agents that were asked, with time, tokens and cost."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Name
from shared.client.views import visible
from shared.client.views.trace import trace

router = APIRouter(prefix="/api/turns", tags=["sessions"])


@router.get("/{turn}")
async def one(turn: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """The turn of a message, a task or an id, asker before asked."""
    found = await trace(client, turn, visitor.user_id)
    first = found[0]
    if not visitor.sight.sees(first["user"]):
        if not first["session"]:
            raise visible.hidden("turn", turn)
        await visible.session(client, visitor.sight, str(first["session"]))
    return {"turns": found}
