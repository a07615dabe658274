"""One connection for many callers: what they ask in one turn of the event loop leaves in one write.

A pooled client gives each caller a connection and a write of its own; joining the writes is worth two to
three times its throughput. Replies come in the order of the commands, so a caller who was cancelled only
leaves a reply that nobody reads: it never reaches somebody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ReadOnlyError, RedisError, ResponseError

from shared.bus.base import Argument
from shared.errors import BusUnreachable

Connect = Callable[[], AbstractConnection]
LOST = (RedisError, OSError, EOFError, asyncio.IncompleteReadError)
# Error replies after which this connection is of no use: another server may be the master by now.
MOVED_ON = ("READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN")


class Lane:
    """Commands on one connection, which is made on first use and made again after it broke."""

    def __init__(self, connect: Connect, silence: float = 9.0) -> None:
        self._connect = connect
        self._silence = silence
        self._connection: AbstractConnection | None = None
        self._opening = asyncio.Lock()
        self._packed: list[bytes] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._work = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def call(self, *arguments: Argument) -> Any:
        """The reply; ResponseError for an error reply, BusUnreachable when the connection broke."""
        connection = self._connection
        if connection is None:
            connection = await self._open()
        future = asyncio.get_running_loop().create_future()
        self._packed.extend(connection.pack_command(*arguments))
        self._waiting.append(future)
        self._work.set()
        return await future

    async def _open(self) -> AbstractConnection:
        async with self._opening:
            if self._connection is not None:
                return self._connection
            connection = self._connect()
            try:
                async with asyncio.timeout(self._silence):
                    await connection.connect()  # type: ignore[no-untyped-call]
            except (*LOST, TimeoutError) as error:
                raise BusUnreachable("Redis does not answer", str(error)) from error
            self._connection = connection
            self._packed, self._waiting = [], deque()
            self._tasks = [
                asyncio.create_task(self._guard(connection, self._write(connection))),
                asyncio.create_task(self._guard(connection, self._read(connection))),
                asyncio.create_task(self._guard(connection, self._watch())),
            ]
            return connection

    async def _guard(self, connection: AbstractConnection, work: Any) -> None:
        try:
            await work
        except (*LOST, TimeoutError) as error:
            self._broke(connection, error)

    async def _write(self, connection: AbstractConnection) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            packed, self._packed = self._packed, []
            if packed:
                await connection.send_packed_command(b"".join(packed), check_health=False)

    async def _read(self, connection: AbstractConnection) -> None:
        while True:
            try:
                reply = await connection.read_response(timeout=math.inf)
            except (ResponseError, ReadOnlyError) as error:
                self._settle(error)
                if str(error).startswith(MOVED_ON):
                    raise
                continue
            self._settle(reply)

    def _settle(self, reply: Any) -> None:
        future = self._waiting.popleft()
        if future.done():
            return
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    async def _watch(self) -> None:
        """A half-open connection says nothing: the oldest question may wait so long, then all is broken."""
        while True:
            oldest = self._waiting[0] if self._waiting else None
            await asyncio.sleep(self._silence)
            if oldest is not None and self._waiting and self._waiting[0] is oldest:
                raise TimeoutError(f"no answer from Redis for {self._silence:.0f} s")

    def _broke(self, connection: AbstractConnection, error: BaseException) -> None:
        if self._connection is not connection:
            return
        self._connection = None
        waiting, self._waiting, self._packed = self._waiting, deque(), []
        for future in waiting:
            if not future.done():
                future.set_exception(BusUnreachable("the connection to Redis broke", str(error)))
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._tasks = [asyncio.create_task(_drop(connection))]

    async def close(self) -> None:
        """Give the connection back; whoever still waits is told."""
        connection, self._connection = self._connection, None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for future in self._waiting:
            if not future.done():
                future.set_exception(BusUnreachable("the connection to Redis was closed"))
        self._waiting.clear()
        if connection is not None:
            await _drop(connection)


async def _drop(connection: AbstractConnection) -> None:
    with contextlib.suppress(*LOST, TimeoutError):
        await connection.disconnect(nowait=True)
