"""What is not there, or not for them, told inside the page: who came here by an old link goes on from it."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from gateways.web.pages.frame import own_seat, seat, view
from shared.errors import PromptDockError


async def failed(request: Request, error: PromptDockError, status: int) -> Response:
    """A view that tells the error."""
    try:
        here = await seat(request)
    except PromptDockError:
        here = own_seat(request)  # of what the address names nothing is told
    response = await view(here, "", "lost.html", error=error)
    response.status_code = status
    return response
