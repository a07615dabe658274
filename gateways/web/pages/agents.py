"""Who is here and does what; each with its model, its tools, what it may do, and its prompt as it is sent."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, Seat, called, known, view
from shared.client.types import Card
from shared.client.views import agents, prompts, status
from shared.client.views.agents import Known
from shared.client.views.prompts import AgentPrompt
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
    return await view(here, "agents", "agents.html", agents=found, doing=doing, profiles=profiles)


@router.get("/agents/{name}")
async def one(here: Here, name: str) -> Response:
    """One agent, with the prompt that its model is sent: as a worker composes it, else as it lies here."""
    profile, doing, sent = await asyncio.gather(
        known(agents.profile(here.client, name), None),
        known(status.doing(here.client), list[Working]()),
        known(_prompt(here, name), None),
    )
    if profile is None and sent is None:
        raise HttpError(404, f"nothing is known of an agent {name[:80]!r}", "", "go back to all agents")
    busy = [one for one in doing if one.agent == name]
    return await view(here, "agents", "agent.html", name=name, doing=busy, profile=profile, sent=sent)


async def _prompt(here: Seat, name: str) -> AgentPrompt:
    return prompts.prompt(await called(here, "show_prompt", {"agent_id": name}))
