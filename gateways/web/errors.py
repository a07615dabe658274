"""What goes wrong, as its reader needs it: JSON for programs, a page for people; bad input is never a 500."""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, Response

from shared import log
from shared.client.text.safe import complaint
from shared.errors import (
    BadMessage,
    Busy,
    ConfigurationError,
    Conflict,
    Denied,
    Missing,
    PromptDockError,
    TimedOut,
    ToolError,
    Unreachable,
    UsageError,
)

# The first that fits counts; what a program can do about it follows from the number.
_STATUS: tuple[tuple[type[PromptDockError], int], ...] = (
    (Missing, 404),
    (UsageError, 422),
    (BadMessage, 422),
    (ToolError, 422),
    (Denied, 403),
    (Conflict, 409),
    (Busy, 429),
    (TimedOut, 504),
    (Unreachable, 503),
    (ConfigurationError, 503),
)
_MISSING = ("there is no ", "there is nothing ")  # how our errors say that a name means nothing
_PROGRAMS = ("/api", "/v1", "/ag-ui", "/mcp", "/metrics")
_AGAIN = 5  # seconds after which a caller who was refused for a bound may try again
_FIXES = {
    400: "send the request as GET /api/docs describes it",
    401: "send Authorization: Bearer with PROMPTDOCK_WEB_TOKEN, or sign in",
    403: "ask the owner",
    404: "GET /api/docs lists all addresses",
    405: "GET /api/docs lists the methods of each address",
    413: "send less, or send it by reference",
    415: "send Content-Type: application/json",
}


# A page that shows an error with what stands around every view.
Framed: TypeAlias = Callable[[Request, PromptDockError, int], Awaitable[Response]]


class HttpError(PromptDockError):
    """An error with the number that HTTP has for it; `field` is the part of the request that is wrong."""

    def __init__(
        self,
        status: int,
        what: str,
        why: str = "",
        fix: str = "",
        headers: Mapping[str, str] | None = None,
        field: str = "",
    ) -> None:
        super().__init__(what, why, fix)
        self.status, self.headers, self.field = status, dict(headers or {}), field


def status_of(error: PromptDockError) -> int:
    """The number that HTTP has for an error of ours."""
    if isinstance(error, HttpError):
        return error.status
    if isinstance(error, UsageError | ToolError) and error.what.startswith(_MISSING):
        return 404
    return next((number for kind, number in _STATUS if isinstance(error, kind)), 500)


def for_programs(path: str) -> bool:
    """Whether what goes wrong at this address is read by a program."""
    return any(path == one or path.startswith(f"{one}/") for one in _PROGRAMS)


def answer(request: Request, error: PromptDockError, headers: Mapping[str, str] | None = None) -> Response:
    """The error in the form that fits the address; `/v1` in that of OpenAI, whose clients look for it."""
    status = status_of(error)
    more = {**getattr(error, "headers", {}), **(headers or {})}
    if status == 429:
        more.setdefault("Retry-After", str(_AGAIN))
    path = request.url.path
    if path.startswith("/v1/") or path == "/v1":
        return JSONResponse({"error": openai(error)}, _OPENAI_STATUS.get(status, status), more)
    if for_programs(path):
        return JSONResponse(error.as_dict(), status, more)
    return HTMLResponse(_page(error), status, more)


# As OpenAI's API answers: what cannot be understood is a 400 there, and clients look at `type` and `code`.
_OPENAI_STATUS = {422: 400}
_OPENAI_KINDS = {403: "permission_error", 429: "rate_limit_error"}
_OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


def openai(error: PromptDockError) -> dict[str, Any]:
    """The error as clients of OpenAI read it, also in the middle of a stream."""
    status, field = status_of(error), getattr(error, "field", "")
    code = "model_not_found" if (status, field) == (404, "model") else _OPENAI_CODES.get(status)
    kind = _OPENAI_KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": error.told(), "type": kind, "param": field or None, "code": code}


def _page(error: PromptDockError) -> str:
    """A page that stands without anything else, also where templates are what is broken."""
    parts = [html.escape(part) for part in (error.why, error.fix) if part]
    told = "".join(f"<p>{part}</p>" for part in parts)
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>PromptDock</title>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        "<link rel='stylesheet' href='/static/page.css'>"
        f"<body class='alone'><main class='card'><h1>{html.escape(error.what)}</h1>{told}"
        "<p><a href='/'>Back</a></p></main></html>"
    )


def install(app: FastAPI, framed: Framed | None = None) -> None:
    """Hand all that is raised below to `answer`, or to `framed` where somebody looks at a page."""

    async def told(
        request: Request, error: PromptDockError, headers: Mapping[str, str] | None = None
    ) -> Response:
        status, looks = status_of(error), request.method == "GET" and not for_programs(request.url.path)
        if framed and looks and status < 500 and getattr(request.state, "person", None):
            try:
                return await framed(request, error, status)
            except Exception as broken:  # then the page that needs nothing
                log.get().warning("A page of an error could not be made", exc_info=broken)
        return answer(request, error, headers)

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, PromptDockError)
        if status_of(error) >= 500:
            log.get().warning("A request failed", path=request.url.path, why=str(error))
        return await told(request, error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        why, field = _complaints(error)
        return await told(request, HttpError(422, "the request cannot be understood", why, field=field))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        what, status = _what(request, error), error.status_code
        fix = _FIXES.get(status, "") if for_programs(request.url.path) else ""
        return await told(request, HttpError(status, what, "", fix), error.headers)

    async def broken(request: Request, _error: Exception) -> Response:
        return answer(
            request, HttpError(400, "the request broke off", "its body is not whole", "send it again")
        )

    async def unexpected(request: Request, error: Exception) -> Response:
        log.get().error("A request failed unexpectedly", path=request.url.path, exc_info=error)
        why = "this is a fault of PromptDock, not of the request"
        return answer(request, HttpError(500, "something went wrong here", why, "promptdock logs web"))

    app.add_exception_handler(PromptDockError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(ClientDisconnect, broken)
    app.add_exception_handler(Exception, unexpected)


def _what(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:
        return f"there is nothing at {request.url.path[:200]!r}"
    if error.status_code == 405:
        return f"{request.url.path[:200]!r} does not take {request.method[:20]}"
    return str(error.detail)


def _complaints(error: RequestValidationError) -> tuple[str, str]:
    """What is wrong, in words, and the first place where it is."""
    items = list(error.errors())[:4]
    places = [_place(item) for item in items]
    told = [
        f"{place or 'the body'} {complaint(item)[:300]}" for place, item in zip(places, items, strict=True)
    ]
    return "; ".join(told), places[0]


def _place(item: Mapping[str, Any]) -> str:
    """By the names that the sender wrote: of text that is no JSON there are none."""
    if item.get("type") == "json_invalid":
        return ""
    return ".".join(str(part)[:80] for part in item.get("loc", ()) if part not in ("body", "query", "path"))
