"""Who is here and does what; each with its model, its tools, what it may do, and its prompt as it is sent."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.pages.frame import Here, known, view
from shared.client.types import Card
from shared.client.views import agents, status
from shared.client.views.agents import Known
from shared.client.views.status import Working

router = APIRouter()


@router.get("/agents")
async def listed(here: Here) -> Response:
    """All of them, and the profiles that are rows."""
    found, doing, rows = await asyncio.gather(
        known(agents.known(here.client), list[Known]()),
        known(status.doing(here.client), list[Working]()),
        known(agents.profiles_kept(here.client), list[Card]()),
    )
    profiles = rows if here.person.owner else []
    return await view(
        here, "agents", "agents.html", agents=found, doing=doing, profile=None, profiles=profiles
    )


@router.get("/agents/{name}")
async def one(here: Here, name: str) -> Response:
    """One agent, with the prompt that its model is sent."""
    profile = await agents.profile(here.client, name)
    doing = await known(status.doing(here.client), list[Working]())
    busy = [one for one in doing if one.agent == name]
    return await view(here, "agents", "agents.html", agents=[], doing=busy, profile=profile, profiles=[])
