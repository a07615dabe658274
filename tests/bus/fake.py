"""A bus on fakeredis: fast, for logic only. It proves nothing about connections or about what is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fakeredis import FakeServer
from fakeredis.aioredis import FakeAsyncRedisConnection
from redis.exceptions import ResponseError

from shared.bus import base
from shared.bus.base import Argument, Script, StreamEntry
from shared.errors import PromptDockError


class FakeBus(base.Bus):
    """A bus on a server that lives in this process; buses on one `FakeServer` see each other."""

    def __init__(self, server: FakeServer | None = None) -> None:
        self.server = server or FakeServer()
        self._connection = self.connect()
        self._lock = asyncio.Lock()

    def connect(self) -> Any:
        """A connection of its own, with replies as the server sends them."""
        return FakeAsyncRedisConnection(server=self.server, protocol=2)

    async def script(self, script: Script, key: str, *arguments: Argument) -> Any:
        # its Lua does not know the first line, which is for the server
        return await self.command("EVAL", script.source.partition("\n")[2], 1, key, *arguments)

    async def command(self, *arguments: Argument, key: str | None = None) -> Any:
        async with self._lock:
            return await _ask(self._connection, *arguments)

    async def publish(self, channel: str, data: bytes | str) -> int:
        return int(await self.command("PUBLISH", channel, data))

    async def read(self, cursors: dict[str, str], block_ms: int, count: int = 500) -> list[StreamEntry]:
        connection = self.connect()
        try:
            blocking = ("XREAD", "COUNT", count, "BLOCK", max(1, block_ms), "STREAMS")
            reply = await _ask(connection, *blocking, *cursors, *cursors.values())
        finally:
            await connection.disconnect()
        return [
            StreamEntry(
                stream.decode(),
                entry.decode(),
                dict(zip((f.decode() for f in flat[::2]), flat[1::2], strict=True)),
            )
            for stream, entries in reply or []
            for entry, flat in entries
        ]

    def listener(
        self,
        channels: Sequence[str],
        on_message: base.OnMessage,
        on_ready: base.OnReady,
        key: str,
        patterns: Sequence[str] = (),
    ) -> base.Listener:
        return _Listener(self, channels, patterns, on_message, on_ready)

    async def listeners(self, channel: str) -> int:
        return int((await self.command("PUBSUB", "NUMSUB", channel))[1])

    async def close(self) -> None:
        await self._connection.disconnect()


class _Listener(base.Listener):
    def __init__(
        self,
        bus: FakeBus,
        channels: Sequence[str],
        patterns: Sequence[str],
        on_message: base.OnMessage,
        on_ready: base.OnReady,
    ) -> None:
        self._bus, self._channels, self._patterns = bus, channels, patterns
        self._on_message, self._on_ready = on_message, on_ready

    async def run(self) -> None:
        connection = self._bus.connect()
        await connection.connect()
        for command, wanted in (("SUBSCRIBE", self._channels), ("PSUBSCRIBE", self._patterns)):
            if wanted:
                await connection.send_command(command, *wanted)
        missing = len(self._channels) + len(self._patterns)
        ready: asyncio.Task[None] | None = None
        try:
            while True:
                reply = await connection.read_response(timeout=None)
                if reply[0] in (b"subscribe", b"psubscribe"):
                    missing -= 1
                    if not missing:
                        ready = asyncio.ensure_future(self._told())
                else:
                    self._on_message(reply[-2].decode(), reply[-1])
        finally:
            if ready is not None:
                ready.cancel()
            await connection.disconnect()

    async def _told(self) -> None:
        await self._on_ready()


async def _ask(connection: Any, *arguments: Argument) -> Any:
    await connection.connect()
    await connection.send_command(*arguments)
    try:
        return await connection.read_response(timeout=None)
    except ResponseError as error:
        raise PromptDockError("Redis refused a command", str(error)) from error
