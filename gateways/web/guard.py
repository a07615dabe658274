"""What stands before every address: who is let in, how much they may send, and what every answer carries."""

from __future__ import annotations

import contextlib
import secrets

from h11 import LocalProtocolError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateways.web import errors
from gateways.web.access import Access, is_free
from gateways.web.errors import HttpError
from shared.errors import PromptDockError

MOST = 2 * 1024 * 1024  # bytes of a body: a message has 256 KiB at most, files of a person come beside it
_POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # a form without script is sent with Origin: null under no-referrer
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """The outermost of the application: `request.state` has the `person` and the `nonce` of this answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, nonce = Request(scope, receive), secrets.token_urlsafe(12)
        outgoing = _Outgoing(send, nonce, scope["path"])
        refused = self._refusal(request)
        if refused is not None:
            await refused(scope, receive, outgoing)
            return
        request.state.nonce = nonce
        await self._app(scope, _bounded(receive), outgoing)

    def _refusal(self, request: Request) -> Response | None:
        try:
            self._access.check_place(request, request.method)
            length = request.headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit()) or int(length[:12]) > MOST:
                raise HttpError(413, "the request is too large", f"{MOST} bytes are the most", "send less")
            person = self._access.person(request)
            if person is None and not is_free(request.url.path):
                if not errors.for_programs(request.url.path) and request.method == "GET":
                    return RedirectResponse("/sign-in", 303)
                raise _unknown()
        except PromptDockError as error:
            return errors.answer(request, error)
        request.state.person = person
        return None


def _unknown() -> HttpError:
    return HttpError(
        401,
        "nobody knows who you are",
        "this address is for people who signed in, and for programs with a token",
        "sign in at /sign-in, or send Authorization: Bearer with your token",
        {"WWW-Authenticate": "Bearer"},
    )


def _bounded(receive: Receive) -> Receive:
    """A body without a length, or with a wrong one, ends where it becomes too large."""
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MOST:
            raise HTTPException(413, "the request is too large")
        return message

    return bounded


class _Outgoing:
    """Puts on every answer what keeps browsers from doing more with it than is meant."""

    def __init__(self, send: Send, nonce: str, path: str) -> None:
        self._send, self._nonce, self._path = send, nonce, path

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message.get("headers", [])}
            more = {**_HEADERS, "content-security-policy": _POLICY.format(nonce=self._nonce)}
            if not self._path.startswith("/static/"):
                more["cache-control"] = "no-store"
            added = [(k.encode(), v.encode()) for k, v in more.items() if k.encode() not in there]
            message = {**message, "headers": [*message.get("headers", []), *added]}
        with contextlib.suppress(LocalProtocolError):  # who broke off in the middle of a body hears no answer
            await self._send(message)
