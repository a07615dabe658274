"""`/mcp`: the cluster as an MCP server over streamable HTTP, for whoever the page lets in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateways.web.access import Person
from shared.client.mcp.callers import Caller
from shared.client.mcp.http import HttpDoor


@asynccontextmanager
async def _running(app: Starlette) -> AsyncIterator[None]:
    app.state.mcp = HttpDoor(app.state.client, app.state.hub, _caller)
    async with app.state.mcp.running():
        yield


def _caller(context: Any) -> Caller:
    """Who the guard let in with the request that carries this call."""
    person: Person = context.request_context.request.state.person
    return Caller(person.user_id, person.sight, person.roles)


class _Door:
    """What the route calls; the door itself is made with the application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope["app"].state.mcp(scope, receive, send)


router = APIRouter(lifespan=_running)
router.routes.append(Route("/mcp", endpoint=_Door(), include_in_schema=False))
