"""The ways in which a server is reached: a plain socket by ourselves, TLS and all else by redis-py.

redis-py brings a cluster, sentinels, metrics and all commands with it: five megabytes, and 50 ms of each command
of a person. It is loaded for those who need it.
"""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from shared.bus.base import Argument
from shared.bus.redis.wire import ErrorReply, Wire
from shared.errors import ConfigurationError

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

# Error replies, of any release, that say that user or password are wrong or missing.
_SHUT = re.compile(
    r"NOAUTH|WRONGPASS|ERR (AUTH|invalid password|Client sent AUTH|.* for 'auth')", re.IGNORECASE
)


@dataclass(frozen=True)
class Plain:
    """A socket without TLS: of a machine and port, or a file."""

    host: str
    port: int
    path: str
    greeting: tuple[Sequence[Argument], ...]

    async def open(self, wire: Wire) -> None:
        loop = asyncio.get_running_loop()
        if self.path:
            await loop.create_unix_connection(lambda: wire, self.path)
        else:
            transport, _ = await loop.create_connection(lambda: wire, self.host, self.port)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for reply in await wire.greet(*self.greeting):
            if isinstance(reply, ErrorReply):
                raise shut_out(reply) if _SHUT.match(str(reply)) else reply


def plain(url: str, client_name: str) -> Plain | None:
    """The way to redis://… and unix://…; None for an address that says more than where, who and which database."""
    parts = urlsplit(url)
    database = parts.path.strip("/") if parts.scheme == "redis" else ""
    if parts.scheme not in ("redis", "unix") or parts.query or parts.fragment:
        return None
    if (database and not database.isdecimal()) or (parts.scheme == "unix" and not parts.path):
        return None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    login = (user, password) if user else (password,)
    greeting: list[Sequence[Argument]] = [("AUTH", *login)] if any(login) else []
    greeting.append(("CLIENT", "SETNAME", client_name))
    if int(database or 0):
        greeting.append(("SELECT", int(database)))
    path = unquote(parts.path) if parts.scheme == "unix" else ""
    return Plain(unquote(parts.hostname or "localhost"), parts.port or 6379, path, tuple(greeting))


@dataclass(frozen=True)
class Library:
    """A connection of redis-py's."""

    connection: AbstractConnection

    async def open(self, wire: Wire) -> None:
        from redis.exceptions import AuthenticationError, RedisError

        try:
            await self.connection.connect()  # type: ignore[no-untyped-call]
        except RedisError as error:
            # Of a socket file the library says only that there is no connection.
            if isinstance(error, AuthenticationError) or isinstance(error.__cause__, AuthenticationError):
                raise shut_out(error) from error
            raise ConnectionError(str(error)) from error
        # It is told when the socket is dropped, so that it knows, too.
        wire.adopt(self.connection._writer.transport, self.connection._close)  # type: ignore[union-attr]


def load_library() -> None:
    """Load redis-py, which looks for OpenTelemetry, that comes with other libraries, to keep metrics nobody reads."""
    metrics = sys.modules.setdefault("opentelemetry", None)  # type: ignore[arg-type]
    try:
        import redis.asyncio  # noqa: F401
    finally:
        if metrics is None:
            del sys.modules["opentelemetry"]


def shut_out(error: Exception) -> ConfigurationError:
    """The server does not let us in."""
    return ConfigurationError(
        "Redis does not let us in", str(error), "correct user and password in REDIS_URL"
    )
