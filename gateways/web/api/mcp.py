"""MCP servers whose tools the agents use: which there are, how they are found, a try, and looking for a lost one."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Name
from gateways.web.calls import call
from shared.client.client import Client
from shared.client.types import Card
from shared.client.views import mcp, visible
from shared.errors import Missing

router = APIRouter(prefix="/api/mcp", tags=["tools"])
_PATIENCE = 30.0  # seconds in which a server has to begin


@router.get("")
async def servers(client: Line, visitor: Visitor) -> dict[str, Any]:
    """The configured MCP servers, each with how the workers find it, and what of the configuration does not count."""
    visible.owner(visitor.sight, "what is configured")
    problems = [problem.told for problem in mcp.configured(client.settings).problems]
    return {"servers": await mcp.listed(client), "problems": problems}


@router.get("/{server}")
async def one(server: Name, client: Line, visitor: Visitor) -> Card:
    """One of them."""
    visible.owner(visitor.sight, "what is configured")
    return await _one(client, server)


@router.post("/{server}/test")
async def test(server: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Start or reach it beside the agents, and list what it has."""
    visible.owner(visitor.sight, "what is configured")
    await _one(client, server)
    return {"name": server, **vars(await mcp.tried(client.settings, server, _PATIENCE))}


@router.post("/{server}/reconnect")
async def reconnect(server: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Have Chatter look for it now; others look by themselves, after a minute at most."""
    visible.owner(visitor.sight, "what is configured")
    await _one(client, server)
    found = (await call(client, visitor, "list_mcp_servers", {}))["servers"]
    card = next((one for one in found if one.get("name") == server), None)
    if card is None:
        raise Missing(
            f"there is no MCP server {server[:50]!r} that Chatter uses", "its profile names none", ""
        )
    return dict(card)


async def _one(client: Client, server: str) -> Card:
    await client.reach()  # how the workers find it is half of the answer
    for card in await mcp.listed(client):
        if card["name"] == server:
            return card
    raise Missing(f"there is no MCP server {server[:50]!r}", "", "GET /api/mcp lists those that there are")
