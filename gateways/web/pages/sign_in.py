"""Signing in and out, where people have to."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gateways.web.access import COOKIE, DAYS, Access
from gateways.web.errors import HttpError, status_of
from gateways.web.pages.frame import given, templates
from shared.errors import PromptDockError

router = APIRouter()


def _access(request: Request) -> Access:
    found = request.app.state.access
    assert isinstance(found, Access)
    return found


@router.get("/sign-in")
async def form(request: Request) -> Response:
    """Name and password, or the token alone."""
    if not _access(request).signs_in:
        return RedirectResponse("/", 303)
    return _page("")


@router.post("/sign-in")
async def enter(request: Request) -> Response:
    """A cookie that no script reads and no other site sends."""
    filled = await request.form()
    address = request.client.host if request.client else ""
    try:
        _person, cookie = await asyncio.to_thread(
            _access(request).sign_in, given(filled, "name", 100), given(filled, "password", 1000), address
        )
    except PromptDockError as error:
        headers = error.headers if isinstance(error, HttpError) else {}
        return _page(error.told(), status_of(error), headers)
    answer = RedirectResponse("/", 303)
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    answer.set_cookie(COOKIE, cookie, max_age=DAYS * 86_400, httponly=True, samesite="strict", secure=secure)
    return answer


@router.post("/sign-out")
async def leave() -> Response:
    """Forget who this browser is."""
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _page(problem: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    html = templates().get_template("sign_in.html").render(problem=problem)
    return HTMLResponse(html, status, headers)
