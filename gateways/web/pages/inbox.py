"""All that waits for a person, over all conversations, with requests answered on the spot."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from gateways.web.pages import answers
from gateways.web.pages.frame import Here, view
from gateways.web.render.words import whither
from shared.client.views import inbox, status

router = APIRouter()


@router.get("/inbox")
async def waiting(here: Here) -> Response:
    """The list."""
    cards, items = await asyncio.gather(answers.waiting(here), inbox.known(here.client, here.person.user_id))
    shown = [item for item in items if item.kind != "permission" or not cards]
    return await view(here, "inbox", "inbox.html", cards=cards, items=shown)


@router.get("/inbox.json")
async def counted(here: Here) -> Response:
    """How much waits, and what came last, for the badge and the notification."""
    items = await inbox.known(here.client, here.person.user_id)
    told = [
        {"id": item.id, "kind": item.kind, "what": item.what[:200], "to": whither(item)} for item in items
    ]
    store = await status.unreadable(here.client)
    return JSONResponse({"count": len(items), "items": told[:50], "store": store})
