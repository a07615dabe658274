"""A subscription that finds out by itself that its connection is dead.

The library's own pub/sub never recovers from a half-open connection (nobody awaits its PONG), so the
watchdog is ours: a PING every few seconds, and after three of them without a byte the connection is dropped
and made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.asyncio.connection import AbstractConnection

from shared import log
from shared.bus import base
from shared.bus.redis.lane import LOST

Connect = Callable[[], Awaitable[AbstractConnection]]
_MESSAGE = {b"message": 1, b"pmessage": 2}
_CONFIRMED = (b"subscribe", b"psubscribe")


class RedisListener(base.Listener):
    """Subscribes to channels and patterns on one connection and hands over what comes, in order."""

    def __init__(
        self,
        connect: Connect,
        channels: Sequence[str],
        patterns: Sequence[str],
        on_message: base.OnMessage,
        on_ready: base.OnReady,
        silence: float,
    ) -> None:
        self._connect, self._channels, self._patterns = connect, list(channels), list(patterns)
        self._on_message, self._on_ready, self._silence = on_message, on_ready, silence
        self._heard = 0.0

    async def run(self) -> None:
        """Listen until cancelled."""
        failures = 0
        while True:
            started = asyncio.get_running_loop().time()
            try:
                await self._once()
            except (*LOST, TimeoutError) as error:
                stable = asyncio.get_running_loop().time() - started > 10
                failures = 1 if stable else failures + 1
                if failures in (1, 10):
                    log.get().warning(
                        "Lost the connection to Redis, reconnecting", why=str(error) or type(error).__name__
                    )
                await asyncio.sleep(random.uniform(0, min(2.0, 0.05 * 2**failures)))

    async def _once(self) -> None:
        connection = await self._connect()
        ready: asyncio.Task[None] | None = None
        watch: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(self._silence):
                await connection.connect()  # type: ignore[no-untyped-call]
                await self._subscribe(connection)
            self._heard = asyncio.get_running_loop().time()
            watch = asyncio.create_task(self._watch(connection))
            ready = asyncio.create_task(self._ready())
            while True:
                self._take(await connection.read_response(timeout=math.inf))
        finally:
            for task in (ready, watch):
                if task is not None:
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, *LOST):
                        await task
            with contextlib.suppress(*LOST, TimeoutError):
                await connection.disconnect(nowait=True)

    async def _ready(self) -> None:
        await self._on_ready()

    async def _subscribe(self, connection: AbstractConnection) -> None:
        if self._channels:
            await connection.send_command("SUBSCRIBE", *self._channels)
        if self._patterns:
            await connection.send_command("PSUBSCRIBE", *self._patterns)
        missing = len(self._channels) + len(self._patterns)
        while missing:
            reply = await connection.read_response(timeout=math.inf)
            if reply[0] in _CONFIRMED:
                missing -= 1
            else:
                self._take(reply)

    def _take(self, reply: Any) -> None:
        self._heard = asyncio.get_running_loop().time()
        at = _MESSAGE.get(reply[0]) if isinstance(reply, list) else None
        if at is not None:
            self._on_message(reply[at].decode("utf-8", "replace"), reply[at + 1])

    async def _watch(self, connection: AbstractConnection) -> None:
        while True:
            await asyncio.sleep(self._silence / 3)
            if asyncio.get_running_loop().time() - self._heard > self._silence:
                await connection.disconnect(nowait=True)  # the reader then raises
                return
            with contextlib.suppress(*LOST):
                await connection.send_command("PING", check_health=False)
