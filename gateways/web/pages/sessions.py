"""All conversations, and a search in what was said in them."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.pages.frame import Here, view
from shared.client.views.conversation import listed as conversations

router = APIRouter()


@router.get("/sessions")
async def listed(here: Here, q: str = "", page: int = 0) -> Response:
    """The last used first, or those in which these words were said."""
    whose = "" if here.person.owner else here.person.user_id
    page = max(0, min(page, 10_000))
    if q.strip():
        found = await conversations.search(here.client, q[:500], whose)
        more = False
    else:
        found = await conversations.recent(
            here.client, whose, page * conversations.PAGE, conversations.PAGE + 1
        )
        more, found = len(found) > conversations.PAGE, found[: conversations.PAGE]
    return await view(here, "sessions", "sessions.html", found=found, q=q, page=page, more=more)
