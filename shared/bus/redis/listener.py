"""A subscription that finds out by itself that its connection is dead.

The library's own pub/sub never recovers from a half-open connection (nobody awaits its PONG), so the
watchdog is ours: a PING every few seconds, and after three of them without a byte the connection is dropped
and made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from shared import log
from shared.bus import base
from shared.bus.backoff import Backoff
from shared.bus.redis.wire import LOST, Connect, ErrorReply, Wire
from shared.errors import ConfigurationError, PromptDockError

_MESSAGE = {b"message": 1, b"pmessage": 2}
_CONFIRMED = (b"subscribe", b"psubscribe")
_PINGS = 3  # without a byte in reply, after which a connection is dead


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
        self._missing = 0  # confirmations of the subscription under way
        self._ready: asyncio.Future[None] | None = None
        self._wire: Wire | None = None

    async def run(self) -> None:
        """Listen until cancelled."""
        backoff = Backoff(most=2.0)
        while True:
            started = asyncio.get_running_loop().time()
            try:
                await self._once()
            except ConfigurationError:
                raise
            except (*LOST, TimeoutError, PromptDockError) as error:
                if self._missing == 0 and self._wire is not None:  # it was listening
                    self.broke = self._wire.last_byte
                if asyncio.get_running_loop().time() - started > 10:  # it was stable
                    backoff.reset()
                if backoff.failures in (0, 9):
                    log.get().warning(
                        "Lost the connection to Redis, reconnecting", why=str(error) or type(error).__name__
                    )
                await backoff.pause()

    async def _once(self) -> None:
        self._missing, self._ready = len(self._channels) + len(self._patterns), None
        wire = self._wire = await Wire.open(self._connect, self._take, self._silence)
        watch = asyncio.create_task(self._watch(wire))
        try:
            if self._channels:
                wire.send("SUBSCRIBE", *self._channels)
            if self._patterns:
                wire.send("PSUBSCRIBE", *self._patterns)
            await wire.lost
        finally:
            wire.close()
            watch.cancel()
            if self._ready is not None:
                self._ready.cancel()
                await asyncio.wait([self._ready])

    def _take(self, reply: Any) -> None:
        if isinstance(reply, ErrorReply):
            raise reply
        kind = reply[0]
        at = _MESSAGE.get(kind)
        if at is not None:
            try:
                self._on_message(reply[at].decode("utf-8", "replace"), reply[at + 1])
            except Exception:  # one message must not end what listens to all others
                log.get().exception("What was heard could not be taken")
        elif kind in _CONFIRMED:
            self._missing -= 1
            if self._missing == 0:
                self._subscribed()

    def _subscribed(self) -> None:
        """Call `on_ready` at this very place in the order of the messages; it may go on beside them."""
        self._ready = asyncio.ensure_future(self._on_ready())
        self._ready.add_done_callback(self._readied)

    def _readied(self, ready: asyncio.Future[None]) -> None:
        if not ready.cancelled() and isinstance(error := ready.exception(), Exception) and self._wire:
            self._wire.fail(error)

    async def _watch(self, wire: Wire) -> None:
        """Looks without a byte between them are counted, not seconds: who was stalled itself has not read yet."""
        seen, quiet = wire.last_byte, 0
        while quiet < _PINGS:
            wire.send("PING")
            await asyncio.sleep(self._silence / _PINGS)
            seen, quiet = wire.last_byte, quiet + 1 if wire.last_byte == seen else 0
        wire.fail(TimeoutError(f"nothing from Redis for {self._silence:.0f} s"))
