"""Who is let in: Host and Origin, a token or a cookie, and the person that follows from them.

On loopback without a token and without named people whoever opens the page there is the owner; the checks of Host and
Origin then keep pages of others from being that. Anywhere else each request shows a token or a cookie.
"""

from __future__ import annotations

import base64
import getpass
import hashlib
import hmac
import ipaddress
import time
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from gateways.web.errors import HttpError
from shared import failpoints
from shared.client.client import Client
from shared.client.local.people import OWNER, NamedPerson, People
from shared.client.views.visible import Sight
from shared.errors import ConfigurationError
from shared.settings import Settings

COOKIE = "promptdock"
DAYS = 30  # that a sign-in lasts
_LEAST = 16  # characters of a token
_TRIES, _WINDOW = 5, 300.0  # failed sign-ins of one address in so many seconds
_ADDRESSES = 10_000  # whose failures are remembered
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_FREE = ("/api/health", "/sign-in", "/sign-out", "/static")  # seen by everybody: they tell nothing


@dataclass(frozen=True)
class Person:
    """Who makes a request. The owner sees everything, others what is theirs and their projects'."""

    user_id: str
    roles: tuple[str, ...] = ()
    projects: frozenset[str] = frozenset()  # slugs
    owner: bool = False
    how: Literal["loopback", "token", "cookie"] = "loopback"

    @property
    def sight(self) -> Sight:
        """How far they see."""
        return Sight(self.user_id, self.projects, self.owner or failpoints.without("web-sight"))


def is_loopback(host: str) -> bool:
    """Whether an address of this name reaches this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def own_name() -> str:
    """Who the owner is, as in a terminal of theirs."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a user id without a name
        return "person"


class Tries:
    """Failed sign-ins by address, so that nobody tries passwords all day."""

    def __init__(self) -> None:
        self._failed: dict[str, list[float]] = {}

    def check(self, address: str) -> None:
        """HttpError 429 where this address failed too often lately."""
        recent = self._recent(address)
        if len(recent) >= _TRIES and not failpoints.without("web-tries"):
            wait = int(_WINDOW - (time.monotonic() - recent[0])) + 1
            raise HttpError(
                429,
                "too many failed sign-ins from this address",
                f"{_TRIES} in {_WINDOW / 60:.0f} minutes are the most",
                f"try again in {wait} s",
                {"Retry-After": str(wait)},
            )

    def failed(self, address: str) -> None:
        """One more."""
        recent = self._recent(address)
        if len(self._failed) >= _ADDRESSES:
            self._failed.pop(next(iter(self._failed)))
        self._failed[_network(address)] = [*recent, time.monotonic()]

    def _recent(self, address: str) -> list[float]:
        since = time.monotonic() - _WINDOW
        return [at for at in self._failed.get(_network(address), []) if at > since]


def _network(address: str) -> str:
    """What one caller has: an address, or of the sixth version the network that everybody is given whole."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 6 and not found.ipv4_mapped:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


class Access:
    """Decides for each request who makes it."""

    def __init__(self, settings: Settings, secret: str) -> None:
        self.people, self.tries = People(settings.home), Tries()
        self._token = settings.web_token.get_secret_value() if settings.web_token else ""
        self._local = is_loopback(settings.web_host)
        self._key = hmac.digest(secret.encode(), b"cookies of the page", "sha256")

    def check_start(self) -> None:
        """ConfigurationError where it would let everybody in."""
        if self._token and len(self._token) < _LEAST:
            raise ConfigurationError(
                "PROMPTDOCK_WEB_TOKEN is too short", f"{_LEAST} characters are the least", "take a longer one"
            )
        if not self._local and self._open and not failpoints.without("web-open"):
            raise ConfigurationError(
                "the page is not opened to other machines without a token",
                "PROMPTDOCK_WEB_HOST is no loopback address, and whoever reaches it could do everything",
                "set PROMPTDOCK_WEB_TOKEN, or add people: promptdock web user add NAME --role owner",
            )

    @property
    def _open(self) -> bool:
        """Whether nobody has to show anything."""
        return not self._token and not self.people.all()

    @property
    def signs_in(self) -> bool:
        """Whether people sign in here."""
        return not self._open

    def check_place(self, request: HTTPConnection, method: str) -> None:
        """HttpError 403 or 421 for what a page of others makes a browser send."""
        if failpoints.without("web-place"):
            return
        host = request.headers.get("host", "")
        if not host:
            raise HttpError(400, "the request names no host", "", "send Host")
        if self._local and self._open and _hostname(host) not in _LOCAL:
            raise HttpError(
                421,
                f"this is not {host[:100]}",
                "the page answers to localhost only, so that no page of others can speak for you",
                "open it by the address that promptdock up printed",
            )
        if method in _SAFE:
            return
        origin = request.headers.get("origin")
        foreign = origin is not None and _place(origin) != host.lower()
        if foreign or request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise HttpError(
                403,
                "a page of others cannot send this",
                f"it came from {(origin or 'elsewhere')[:100]}",
                "behind a proxy, let it pass Host unchanged",
            )

    def person(self, request: HTTPConnection) -> Person | None:
        """Who this is; None where they have to show something first."""
        if not self.people.all() and not self._token:
            return Person(own_name(), (OWNER,), owner=True) if self._local else None
        given = request.headers.get("authorization", "")
        if given[:7].lower() == "bearer ":
            return self._of_token(given[7:].strip())
        return self._of_cookie(request.cookies.get(COOKIE, ""))

    def sign_in(self, name: str, password: str, address: str) -> tuple[Person, str]:
        """Who that is, and the cookie by which they are known; HttpError 401 or 429. It takes a while: in a thread.

        Without a name the token is the password.
        """
        self.tries.check(address)
        if not name and self._token and _same(password, self._token):
            return self._owner("cookie"), self._cookie("", _digest(self._token))
        found = self.people.check(name, password) if name else None
        if found is None:
            self.tries.failed(address)
            raise HttpError(401, "the name or the password is wrong", "", "try again, or ask the owner")
        return _named(found, "cookie"), self._cookie(found.name, str(found.epoch))

    def _of_token(self, token: str) -> Person | None:
        if self._token and _same(token, self._token):
            return self._owner("token")
        found = self.people.of_token(token)
        return _named(found, "token") if found else None

    def _owner(self, how: Literal["token", "cookie"]) -> Person:
        return Person(own_name(), (OWNER,), owner=True, how=how)

    def _cookie(self, name: str, state: str) -> str:
        until = int(time.time()) + DAYS * 86_400
        written = base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")
        return f"{written}.{until}.{self._code(name, str(until), state)}"

    def _code(self, name: str, until: str, state: str) -> str:
        return hmac.new(self._key, f"{name}\n{until}\n{state}".encode(), "sha256").hexdigest()

    def _of_cookie(self, cookie: str) -> Person | None:
        written, _, rest = cookie.partition(".")
        until, _, code = rest.partition(".")
        if not (until.isascii() and until.isdigit() and len(until) < 16 and int(until) > time.time()):
            return None
        try:
            name = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4)).decode()
        except ValueError:
            return None
        found = self.people.find(name) if name else None
        state = str(found.epoch) if found else _digest(self._token) if self._token and not name else None
        if state is None or not _same(code, self._code(name, until, state)):
            return None
        return _named(found, "cookie") if found else self._owner("cookie")


def _named(found: NamedPerson, how: Literal["token", "cookie"]) -> Person:
    return Person(found.name, found.roles, frozenset(found.projects), OWNER in found.roles, how)


def _hostname(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _place(origin: str) -> str:
    """Host and port of an origin; "" for what is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def is_free(path: str) -> bool:
    """Whether everybody may see this address."""
    return any(path == one or path.startswith(f"{one}/") for one in _FREE)


def person(request: Request) -> Person:
    """Who makes the request, as the guard found it."""
    found = request.state.person
    assert isinstance(found, Person), "the guard lets nobody else through"
    return found


def client(request: Request) -> Client:
    """The line to the cluster."""
    found = request.app.state.client
    assert isinstance(found, Client)
    return found


Visitor = Annotated[Person, Depends(person)]
Line = Annotated[Client, Depends(client)]
