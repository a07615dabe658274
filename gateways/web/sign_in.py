"""Signing in: a form that stands without a script, and the cookie that it gives."""

from __future__ import annotations

import asyncio
import html
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gateways.web.access import COOKIE, DAYS, Access
from gateways.web.errors import HttpError
from shared import log

router = APIRouter(include_in_schema=False)
_AT_ONCE = asyncio.Semaphore(2)  # each takes 64 MB and most of a processor for a moment
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:22rem;margin:12vh auto;padding:0 1rem;color-scheme:light dark}"
    "label{display:block;margin:.75rem 0}input,button{font:inherit;width:100%;padding:.5rem;box-sizing:border-box}"
)


@router.get("/sign-in")
async def form(request: Request) -> Response:
    """The form, where people sign in at all."""
    if not _access(request).signs_in:
        return RedirectResponse("/", 303)
    return _form(request, "")


@router.post("/sign-in")
async def enter(
    request: Request,
    password: Annotated[str, Form(max_length=1000)],
    name: Annotated[str, Form(max_length=100)] = "",
) -> Response:
    """The cookie for who it is; the form again, with why, where it is nobody."""
    access, address = _access(request), request.client.host if request.client else ""
    if not access.signs_in:
        return RedirectResponse("/", 303)
    try:
        async with _AT_ONCE:
            person, cookie = await asyncio.to_thread(access.sign_in, name.strip(), password, address)
    except HttpError as error:
        log.get().warning("Somebody was not let in", address=address, why=error.what)
        return _form(request, error.told(), error.status, error.headers)
    log.get().info("Somebody signed in", user_id=person.user_id, address=address)
    response = RedirectResponse("/", 303)
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=DAYS * 86_400,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.post("/sign-out")
async def leave() -> Response:
    """Away with the cookie."""
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


def _access(request: Request) -> Access:
    found = request.app.state.access
    assert isinstance(found, Access)
    return found


def _form(request: Request, told: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    why = f"<p role='alert'>{html.escape(told[:1].upper() + told[1:])}</p>" if told else ""
    page = (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'><title>Sign in · PromptDock</title>"
        "<link rel='icon' href='data:,'>"
        f"<style nonce='{request.state.nonce}'>{_STYLE}</style><main><h1>PromptDock</h1>{why}"
        "<form method='post' action='/sign-in'>"
        "<label>Name <input name='name' autocomplete='username'></label>"
        "<label>Password, or without a name the token "
        "<input name='password' type='password' autocomplete='current-password' required autofocus></label>"
        "<button>Sign in</button></form></main></html>"
    )
    return HTMLResponse(page, status, headers)
