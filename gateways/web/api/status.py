"""Whether it lives, and the cluster at a glance."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter

from gateways.web.access import Line, Visitor
from shared.client.fanout import presence_card
from shared.client.local.release import release
from shared.client.views import status as views
from shared.errors import PromptDockError

_REACH = 2.0  # seconds in which Redis may answer
_PUBLIC = ("model", "demo", "expected")
router = APIRouter(prefix="/api", tags=["status"])


@router.get("/health")
async def health(client: Line) -> dict[str, Any]:
    """Whether this process answers, and whether it reaches Redis; for those who watch it, and for everybody."""
    try:
        async with asyncio.timeout(_REACH):
            await client.reach()
        redis = True
    except (PromptDockError, TimeoutError):
        redis = False
    return {"status": "ok", "redis": redis, "version": release()}


@router.get("/status")
async def cluster(client: Line, visitor: Visitor) -> dict[str, Any]:
    """Agents, queues, Redis and the Store; who works on what is told to the owner alone."""
    found = await views.status(client)
    if visitor.owner:
        return found
    known: dict[str, Any] = {name: found[name] for name in _PUBLIC if name in found}
    return {**known, "agents": [presence_card(card) for card in found["agents"]]}
