"""Whether it lives, and the cluster at a glance."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from gateways.web.access import Line, Visitor
from shared.client.local.release import release
from shared.client.views import status as views
from shared.errors import PromptDockError

router = APIRouter(prefix="/api", tags=["status"])


@router.get("/health")
async def health(client: Line) -> dict[str, Any]:
    """Whether this process answers, and whether it reaches Redis; for those who watch it, and for everybody."""
    try:
        await client.reach()
        redis = True
    except PromptDockError:
        redis = False
    return {"status": "ok", "redis": redis, "version": release()}


@router.get("/status")
async def cluster(client: Line, _visitor: Visitor) -> dict[str, Any]:
    """Agents, queues, Redis and the Store."""
    return await views.status(client)
