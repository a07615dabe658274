"""What goes wrong, as its reader needs it: JSON for programs, a page for people; bad input is never a 500."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, Response

from shared import log
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
    404: "GET /api/docs lists all addresses",
    405: "GET /api/docs lists the methods of each address",
    413: "send less, or send it by reference",
    415: "send Content-Type: application/json",
}


class HttpError(PromptDockError):
    """An error with the number that HTTP has for it."""

    def __init__(
        self, status: int, what: str, why: str = "", fix: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(what, why, fix)
        self.status, self.headers = status, dict(headers or {})


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
        told = {"message": error.told(), "type": _openai_kind(status), "param": None, "code": None}
        return JSONResponse({"error": told}, status, more)
    if for_programs(path):
        return JSONResponse(error.as_dict(), status, more)
    return HTMLResponse(_page(error), status, more)


def _openai_kind(status: int) -> str:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    return kinds.get(status, "invalid_request_error" if status < 500 else "server_error")


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


def install(app: FastAPI) -> None:
    """Hand all that is raised below to `answer`."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, PromptDockError)
        if status_of(error) >= 500:
            log.get().warning("A request failed", path=request.url.path, why=str(error))
        return answer(request, error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(request, HttpError(422, "the request cannot be understood", _complaints(error)))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        fix = _FIXES.get(error.status_code, "")
        return answer(request, HttpError(error.status_code, _what(request, error), "", fix), error.headers)

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


def _complaints(error: RequestValidationError) -> str:
    told = []
    for item in list(error.errors())[:4]:
        place = ".".join(str(part) for part in item.get("loc", ()) if part not in ("body", "query", "path"))
        told.append(f"{place or 'body'}: {_plainly(item)}")
    return "; ".join(told)


def _plainly(item: dict[str, Any]) -> str:
    words = str(item.get("msg", "it cannot be used")).removeprefix("Value error, ")
    return words[:1].lower() + words[1:300]
