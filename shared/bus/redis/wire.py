"""A connected socket, read straight into replies: no coroutine and no task for each of them.

A way (`ways.py`) connects it: address, login, database. hiredis turns bytes into replies. That is worth a factor
of two to three beside awaiting each reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

import hiredis

from shared.bus.base import Argument
from shared.errors import BusUnreachable


class ErrorReply(Exception):
    """An error reply, as the server words it."""


class Garbled(Exception):
    """What came is no reply."""


class Way(Protocol):
    """How a server is reached."""

    async def open(self, wire: Wire) -> None:
        """Connect `wire` and log in; one of LOST, or ConfigurationError where the server does not let us in."""


Connect = Callable[[], Awaitable[Way]]
LOST = (ErrorReply, Garbled, OSError, EOFError)
_NOTHING = object()


class Wire(asyncio.Protocol):
    """One connection. Each reply goes to `take`; an error reply is a Refused handed to it as well.

    `lost` ends with the error that broke the connection, an error of `take` included.
    """

    def __init__(self, take: Callable[[Any], None]) -> None:
        self._take = take
        self._transport: asyncio.Transport | None = None
        self._given_back: Callable[[], None] = _nothing
        self._reader = hiredis.Reader(protocolError=Garbled, replyError=ErrorReply, notEnoughData=_NOTHING)
        self._loop = asyncio.get_running_loop()
        self._packed: list[bytes] = []
        self.last_byte = self._loop.time()  # when the last bytes came
        self.lost: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def open(cls, connect: Connect, take: Callable[[Any], None], patience: float) -> Wire:
        """Connect within `patience` seconds, or BusUnreachable; ConfigurationError for a wrong password."""
        wire = cls(take)
        try:
            async with asyncio.timeout(patience):
                way = await connect()
                await way.open(wire)
        except BaseException as error:  # who gives up leaves no connection behind either
            wire.close()
            if isinstance(error, (*LOST, TimeoutError)):
                raise BusUnreachable("Redis does not answer", str(error)) from error
            raise
        return wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def adopt(self, transport: asyncio.BaseTransport, given_back: Callable[[], None]) -> None:
        """Take over what somebody else connected, who is told when it is dropped."""
        self._transport, self._given_back = cast(asyncio.Transport, transport), given_back
        self._transport.set_protocol(self)

    async def greet(self, *commands: Sequence[Argument]) -> list[Any]:
        """The replies to commands that come before all others; error replies are among them as Refused."""
        replies: list[Any] = []
        all_here = self._loop.create_future()

        def collect(reply: Any) -> None:
            replies.append(reply)
            if len(replies) == len(commands) and not all_here.done():
                all_here.set_result(None)

        take, self._take = self._take, collect
        for command in commands:
            self.join(*command)
        await asyncio.wait({all_here, self.lost}, return_when=asyncio.FIRST_COMPLETED)
        if not all_here.done():
            self.lost.result()  # it raises what broke the connection
        self._take = take
        return replies

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
        if self._transport is None:
            self.fail(ConnectionError("it is not connected"))
            return
        try:
            self._transport.write(data)
        except RuntimeError as error:  # of uvloop: the connection is closed, and `lost` is about to say so
            self.fail(ConnectionResetError(str(error)))

    def data_received(self, data: bytes) -> None:
        self.last_byte = self._loop.time()
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
        if self._transport is not None:
            self._transport.abort()
        self._given_back()


def _nothing() -> None:
    """Nobody else holds the connection."""
