"""RedisBus: a lane for commands to each server, a connection for each subscription and blocking read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from shared.bus import base
from shared.bus.base import Argument, Script, StreamEntry
from shared.bus.redis import topology
from shared.bus.redis.blocking import Blocking
from shared.bus.redis.lane import MOVED_ON, Lane
from shared.bus.redis.listener import RedisListener
from shared.bus.redis.wire import ErrorReply, Way
from shared.errors import BusUnreachable, ConfigurationError, PromptDockError

# Error replies that say that a key lies elsewhere by now.
_ELSEWHERE = ("MOVED", "ASK", "TRYAGAIN")
_TRIES = 5
_KEYLESS = frozenset({"INFO", "PING", "PUBLISH", "PUBSUB", "TIME"})


class RedisBus(base.Bus):
    """One Redis or Valkey, by URL: a server, the master behind sentinels, or a cluster (see topology)."""

    def __init__(self, url: str, silence: float = 9.0, client_name: str = "promptdock") -> None:
        # RESP2: a subscription's messages and a command's replies are then plain lists on every server.
        options: dict[str, Any] = {
            "protocol": 2,
            "socket_timeout": None,
            "socket_connect_timeout": silence,
            "client_name": client_name,
            "driver_info": None,
        }
        self._topology = topology.of(url, options)
        self._silence = silence
        self._lanes: dict[str, Lane] = {}
        self._idle: list[tuple[str, Blocking]] = []

    async def script(self, script: Script, key: str, *arguments: Argument) -> Any:
        try:
            return await self._call(key, "EVALSHA", script.sha, 1, key, *arguments)
        except ErrorReply as error:
            if not str(error).startswith("NOSCRIPT"):
                raise _translate(error) from error
        return await self.command("EVAL", script.source, 1, key, *arguments, key=key)

    async def command(self, *arguments: Argument, key: str | None = None) -> Any:
        try:
            return await self._call(key if key is not None else _key(arguments), *arguments)
        except ErrorReply as error:
            raise _translate(error) from error

    async def _call(self, key: str | None, *arguments: Argument) -> Any:
        tries = 0
        while True:
            lane = self._lane(await self._topology.node(key))
            try:
                return await lane.call(*arguments)
            except BusUnreachable:
                await self._topology.look_again()
                raise
            except ErrorReply as error:
                tries += 1
                if tries == _TRIES or not str(error).startswith(_ELSEWHERE):
                    raise
                await self._topology.look_again()
                await asyncio.sleep(0.05 * tries)

    def _lane(self, node: str) -> Lane:
        lane = self._lanes.get(node)
        if lane is None:
            lane = self._lanes[node] = Lane(lambda: self._connect(node), self._silence)
        return lane

    async def _connect(self, node: str) -> Way:
        return self._topology.way(node)

    async def publish(self, channel: str, data: bytes | str) -> int:
        return int(await self.command("PUBLISH", channel, data))

    async def read(self, cursors: dict[str, str], block_ms: int, count: int = 500) -> list[StreamEntry]:
        node = await self._topology.node(next(iter(cursors)))
        free = next((pair for pair in self._idle if pair[0] == node), None)
        if free is not None:
            self._idle.remove(free)
        line = free[1] if free is not None else Blocking(lambda: self._connect(node))
        blocking = ("XREAD", "COUNT", count, "BLOCK", max(1, block_ms), "STREAMS")
        try:
            reply = await line.call(
                *blocking, *cursors, *cursors.values(), patience=block_ms / 1000 + self._silence
            )
        except BusUnreachable:
            await self._topology.look_again()
            raise
        self._idle.append((node, line))
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
        async def connect() -> Way:
            return self._topology.way(await self._topology.node(key))

        return RedisListener(connect, channels, patterns, on_message, on_ready, self._silence)

    async def listeners(self, channel: str) -> int:
        count = 0
        for node in await self._topology.nodes():  # each counts its own subscribers only
            reply = await self._lane(node).call("PUBSUB", "NUMSUB", channel)
            count += int(reply[1])
        return count

    async def close(self) -> None:
        for lane in self._lanes.values():
            await lane.close()
        while self._idle:
            self._idle.pop()[1].close()
        await self._topology.close()


def _key(arguments: Sequence[Argument]) -> str | None:
    """The key that a command concerns: its first argument, where it is about a key at all."""
    if len(arguments) < 2 or arguments[0] in _KEYLESS:
        return None
    return str(arguments[1])


def _fields(values: list[bytes]) -> dict[str, bytes]:
    pairs = iter(values)
    return {name.decode(): value for name, value in zip(pairs, pairs, strict=True)}


def _translate(error: ErrorReply) -> PromptDockError:
    text = str(error)
    if text.startswith(MOVED_ON):
        return BusUnreachable("Redis cannot take writes now", text)
    if text.startswith("OOM"):
        return BusUnreachable("Redis is out of memory", text, "raise its maxmemory, or drain what waits")
    if text.startswith(("NOAUTH", "WRONGPASS", "NOPERM")):
        return ConfigurationError("Redis does not let us in", text, "correct user and password in REDIS_URL")
    return PromptDockError("Redis refused a command", text)
