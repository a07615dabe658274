"""A connection for commands that the server answers when something comes: a lane must not wait for them."""

from __future__ import annotations

import asyncio
from typing import Any

from shared.bus.base import Argument
from shared.bus.redis.wire import LOST, Connect, Wire
from shared.errors import BusUnreachable


class Blocking:
    """One command at a time, on a connection that is made on first use and made again after it broke."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._wire: Wire | None = None
        self._reply: asyncio.Future[Any] | None = None

    async def call(self, *arguments: Argument, patience: float) -> Any:
        """The reply; BusUnreachable for an error reply, and where none comes in so many seconds.

        After any error, a cancellation included, the connection is given back.
        """
        try:
            async with asyncio.timeout(patience):
                wire = self._wire
                if wire is None or wire.lost.done():
                    wire = self._wire = await Wire.open(self._connect, self._take, patience)
                    wire.lost.add_done_callback(lambda lost: None if lost.cancelled() else lost.exception())
                self._reply = reply = asyncio.get_running_loop().create_future()
                wire.send(*arguments)
                await asyncio.wait({reply, wire.lost}, return_when=asyncio.FIRST_COMPLETED)
                if not reply.done():
                    wire.lost.result()
                return reply.result()
        except BaseException as error:
            self.close()
            if isinstance(error, (*LOST, TimeoutError)):
                raise BusUnreachable("Redis does not answer", str(error)) from error
            raise

    def _take(self, reply: Any) -> None:
        waiting, self._reply = self._reply, None
        if waiting is None or waiting.done():
            return
        if isinstance(reply, Exception):
            waiting.set_exception(reply)
        else:
            waiting.set_result(reply)

    def close(self) -> None:
        """Give the connection back."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
