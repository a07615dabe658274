"""A connected socket, read straight into replies: no coroutine and no task for each of them.

redis-py connects (address, TLS, login, database); from then on the socket's protocol is ours, and hiredis
turns its bytes into replies. That is worth a factor of two to three beside awaiting each reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import AuthenticationError, InvalidResponse, RedisError, ResponseError

from shared.bus.base import Argument
from shared.errors import BusUnreachable, ConfigurationError

Connect = Callable[[], Awaitable[AbstractConnection]]
LOST = (RedisError, OSError, EOFError)
_NOTHING = object()


class Wire(asyncio.Protocol):
    """One connection. Each reply goes to `take`; an error reply is a ResponseError handed to it as well.

    `lost` ends with the error that broke the connection, an error of `take` included.
    """

    def __init__(self, connection: AbstractConnection, take: Callable[[Any], None]) -> None:
        self._connection, self._take = connection, take
        self._transport = cast(asyncio.Transport, connection._writer.transport)  # type: ignore[union-attr]
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse, replyError=ResponseError, notEnoughData=_NOTHING
        )
        self._loop = asyncio.get_running_loop()
        self._packed: list[bytes] = []
        self.heard = self._loop.time()  # when the last bytes came
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self._transport.set_protocol(self)

    @classmethod
    async def open(cls, connect: Connect, take: Callable[[Any], None], patience: float) -> Wire:
        """Connect within `patience` seconds, or BusUnreachable; ConfigurationError for a wrong password."""
        try:
            async with asyncio.timeout(patience):
                connection = await connect()
                await connection.connect()  # type: ignore[no-untyped-call]
        except AuthenticationError as error:
            raise ConfigurationError(
                "Redis does not let us in", str(error), "correct user and password in REDIS_URL"
            ) from error
        except (*LOST, TimeoutError) as error:
            raise BusUnreachable("Redis does not answer", str(error)) from error
        return cls(connection, take)

    def send(self, *arguments: Argument) -> None:
        """Put one command on its way at once."""
        self._write(hiredis.pack_command(arguments))  # type: ignore[arg-type]

    def join(self, *arguments: Argument) -> None:
        """Put one command on its way, in one write with all others of this turn of the event loop."""
        if not self._packed:
            self._loop.call_soon(self._flush)
        self._packed.append(hiredis.pack_command(arguments))  # type: ignore[arg-type]

    def _flush(self) -> None:
        packed, self._packed = self._packed, []
        self._write(b"".join(packed))

    def _write(self, data: bytes) -> None:
        try:
            self._transport.write(data)
        except RuntimeError as error:  # of uvloop: the connection is closed, and `lost` is about to say so
            self.fail(ConnectionResetError(str(error)))

    def data_received(self, data: bytes) -> None:
        self.heard = self._loop.time()
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not _NOTHING:
                self._take(reply)
        except Exception as error:
            self.fail(error)

    def connection_lost(self, error: Exception | None) -> None:
        self.fail(error or ConnectionResetError("the server closed the connection"))

    def fail(self, error: Exception) -> None:
        """Nothing more comes from here: drop the connection at once, whatever waits to be sent."""
        if not self.lost.done():
            self.lost.set_exception(error)
        self._drop()

    def close(self) -> None:
        """Give the connection back; `lost` is cancelled."""
        self.lost.cancel()
        self._drop()

    def _drop(self) -> None:
        self._transport.abort()
        self._connection._close()  # type: ignore[no-untyped-call]  # so that it knows, too
