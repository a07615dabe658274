"""RedisBus: one lane for commands, a connection for each subscription and for each blocking read."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.exceptions import RedisError, ResponseError

from shared.bus import base
from shared.bus.base import Argument, Script, StreamEntry
from shared.bus.redis.lane import MOVED_ON, Lane
from shared.bus.redis.listener import RedisListener
from shared.bus.redis.wire import LOST
from shared.errors import BusUnreachable, ConfigurationError, PromptDockError


class RedisBus(base.Bus):
    """One Redis or Valkey server, by URL (redis://, rediss://, unix://)."""

    def __init__(self, url: str, silence: float = 9.0, client_name: str = "promptdock") -> None:
        try:
            options: dict[str, Any] = dict(parse_url(url))
        except ValueError as error:
            raise ConfigurationError(
                "REDIS_URL cannot be read", str(error), "write it as redis://host:6379"
            ) from None
        self._make = options.pop("connection_class", Connection)
        # RESP2: a subscription's messages and a command's replies are then plain lists on every server.
        self._options = options | {
            "protocol": 2,
            "socket_timeout": None,
            "socket_connect_timeout": silence,
            "client_name": client_name,
            "driver_info": None,
        }
        self._silence = silence
        self._lane = Lane(self._connection, silence)
        self._idle: list[AbstractConnection] = []  # for blocking reads, which a lane must not wait for

    def _connection(self) -> AbstractConnection:
        connection: AbstractConnection = self._make(**self._options)
        return connection

    async def script(self, script: Script, key: str, *arguments: Argument) -> Any:
        try:
            return await self._lane.call("EVALSHA", script.sha, 1, key, *arguments)
        except ResponseError as error:
            if not str(error).startswith("NOSCRIPT"):
                raise _translate(error) from error
        return await self.command("EVAL", script.source, 1, key, *arguments)

    async def command(self, *arguments: Argument, key: str | None = None) -> Any:
        try:
            return await self._lane.call(*arguments)
        except ResponseError as error:
            raise _translate(error) from error

    async def publish(self, channel: str, data: bytes | str) -> int:
        return int(await self.command("PUBLISH", channel, data))

    async def read(self, cursors: dict[str, str], block_ms: int, count: int = 500) -> list[StreamEntry]:
        connection = self._idle.pop() if self._idle else self._connection()
        try:
            async with asyncio.timeout(block_ms / 1000 + self._silence):
                await connection.connect()  # type: ignore[no-untyped-call]
                await connection.send_command(
                    "XREAD", "COUNT", count, "BLOCK", max(1, block_ms), "STREAMS", *cursors, *cursors.values()
                )
                reply = await connection.read_response(timeout=math.inf)
        except BaseException as error:
            await connection.disconnect(nowait=True)
            if isinstance(error, (*LOST, TimeoutError)):
                raise BusUnreachable("Redis does not answer", str(error)) from error
            raise
        self._idle.append(connection)
        return [
            StreamEntry(stream.decode(), entry.decode(), _fields(values))
            for stream, entries in reply or []
            for entry, values in entries
        ]

    def listener(
        self,
        channels: Sequence[str],
        on_message: base.OnMessage,
        on_ready: base.OnReady,
        key: str,
        patterns: Sequence[str] = (),
    ) -> RedisListener:
        return RedisListener(self._connection, channels, patterns, on_message, on_ready, self._silence)

    async def listeners(self, channel: str) -> int:
        reply = await self.command("PUBSUB", "NUMSUB", channel)
        return int(reply[1])

    async def close(self) -> None:
        await self._lane.close()
        while self._idle:
            await self._idle.pop().disconnect(nowait=True)


def _fields(values: list[bytes]) -> dict[str, bytes]:
    pairs = iter(values)
    return {name.decode(): value for name, value in zip(pairs, pairs, strict=True)}


def _translate(error: RedisError) -> PromptDockError:
    text = str(error)
    if text.startswith(MOVED_ON):
        return BusUnreachable("Redis cannot take writes now", text)
    if text.startswith("OOM"):
        return BusUnreachable("Redis is out of memory", text, "raise its maxmemory, or drain what waits")
    if text.startswith(("NOAUTH", "WRONGPASS", "NOPERM")):
        return ConfigurationError("Redis does not let us in", text, "correct user and password in REDIS_URL")
    return PromptDockError("Redis refused a command", text)
