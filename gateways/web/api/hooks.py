"""What runs by itself: hooks, their next runs, and what became of those before."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Query

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Body, Limit, Name
from gateways.web.calls import call
from shared.client.client import Client
from shared.client.views import hooks as views
from shared.client.views.visible import Sight, hidden

router = APIRouter(prefix="/api/hooks", tags=["hooks"])


class HookChange(Body):
    """Whether it runs."""

    enabled: bool


async def _seen(client: Client, sight: Sight, hook: str = "") -> list[views.HookView]:
    found = [
        one
        for one in await views.hooks(client)
        if (sight.everything or one.project in sight.projects) and hook in ("", one.id)
    ]
    if hook and not found:
        raise hidden("hook", hook)
    return found


@router.get("")
async def listing(client: Line, visitor: Visitor) -> dict[str, Any]:
    """Those of this person's projects, with their next runs."""
    return {"hooks": [asdict(one) for one in await _seen(client, visitor.sight)]}


@router.get("/{hook}")
async def one(hook: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """One of them."""
    return asdict((await _seen(client, visitor.sight, hook))[0])


@router.get("/{hook}/runs")
async def runs(hook: Name, client: Line, visitor: Visitor, limit: Limit = 30) -> dict[str, Any]:
    """Its runs, the newest first."""
    await _seen(client, visitor.sight, hook)
    return {"runs": [asdict(one) for one in await views.runs(client, hook, limit)]}


@router.post("/{hook}/run")
async def run(
    hook: Name,
    client: Line,
    visitor: Visitor,
    dry: bool = Query(False, description="Run nothing that needs leave."),
) -> dict[str, Any]:
    """Run it now."""
    await _seen(client, visitor.sight, hook)
    return await call(client, visitor, "fire_hook", {"hook_id": hook, "dry_run": dry})


@router.post("/{hook}/allow")
async def allow(hook: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Allow exactly the steps that it has now."""
    await _seen(client, visitor.sight, hook)
    return await call(client, visitor, "allow_hook", {"hook_id": hook})


@router.patch("/{hook}")
async def change(hook: Name, asked: HookChange, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Let it run, or let it rest."""
    await _seen(client, visitor.sight, hook)
    return await call(client, visitor, "edit_hook", {"hook_id": hook, "enabled": asked.enabled})


@router.delete("/{hook}")
async def delete(hook: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Away with it."""
    await _seen(client, visitor.sight, hook)
    return await call(client, visitor, "delete_hook", {"hook_id": hook})
