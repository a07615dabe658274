"""One connection for many callers: what they ask while others wait leaves in one write per event loop turn.

A pooled client gives each caller a connection and a write of its own; joining the writes is worth two to
three times its throughput. Replies come in the order of the commands, so a caller who was cancelled only
leaves a reply that nobody reads: it never reaches somebody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from shared.bus.base import Argument
from shared.bus.redis.wire import Connect, ErrorReply, Wire
from shared.errors import BusUnreachable

# Error replies after which this connection is of no use: another server may be the master by now.
MOVED_ON = ("READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN")
_LOOKS = 8  # at whoever waits, after which without a byte the connection is dead


class Lane:
    """Commands on one connection, which is made on first use and made again after it broke."""

    def __init__(self, connect: Connect, silence: float = 9.0) -> None:
        self._connect = connect
        self._silence = silence
        self._wire: Wire | None = None
        self._opening = asyncio.Lock()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._last_call = 0.0  # since when somebody has been waiting without a break
        self._watcher: asyncio.Task[None] | None = None

    async def call(self, *arguments: Argument) -> Any:
        """The reply; Refused for an error reply, BusUnreachable when the connection broke."""
        wire = self._wire
        if wire is None:
            wire = await self._open()
        loop = asyncio.get_running_loop()
        if self._waiting:
            wire.join(*arguments)
        else:  # nobody is on the way: there is nothing to join
            wire.send(*arguments)
            self._last_call = loop.time()
        future = loop.create_future()
        self._waiting.append(future)
        return await future

    async def _open(self) -> Wire:
        async with self._opening:
            if self._wire is None:
                wire = await Wire.open(self._connect, self._settle, self._silence)
                self._wire, self._waiting = wire, deque()
                wire.lost.add_done_callback(lambda lost: self._broke(wire, lost))
                self._watcher = asyncio.create_task(self._watch(wire))
            return self._wire

    def _settle(self, reply: Any) -> None:
        future = self._waiting.popleft()
        if isinstance(reply, ErrorReply):
            if not future.done():
                future.set_exception(reply)
            if str(reply).startswith(MOVED_ON):
                raise reply
        elif not future.done():
            future.set_result(reply)

    async def _watch(self, wire: Wire) -> None:
        """Half-open connections say nothing: one is dead when no byte comes for so long to who waits.

        Looks are counted, not seconds: who was stalled or frozen itself finds the replies still unread.
        """
        since, quiet = 0.0, 0
        while quiet < _LOOKS:
            await asyncio.sleep(self._silence / _LOOKS)
            before, since = since, max(self._last_call, wire.last_byte)
            quiet = quiet + 1 if self._waiting and since == before else 0
        wire.fail(TimeoutError(f"no answer from Redis for {self._silence:.0f} s"))

    def _broke(self, wire: Wire, lost: asyncio.Future[None]) -> None:
        why = "it was closed" if lost.cancelled() else str(lost.exception())
        if self._wire is not wire:
            return
        self._wire = None
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_exception(BusUnreachable("the connection to Redis broke", why))
        if self._watcher is not None:
            self._watcher.cancel()

    async def close(self) -> None:
        """Give the connection back; whoever still waits is told."""
        wire, watcher = self._wire, self._watcher
        if watcher is not None:
            watcher.cancel()
        if wire is not None:
            wire.close()
        await asyncio.sleep(0)  # the lane hears of it, and tells its callers
