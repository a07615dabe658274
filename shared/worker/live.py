"""Live events of a session: published, and kept in a capped stream for readers who come back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from shared import log
from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.errors import PromptDockError

_KEPT = 2000
_LIFE = 3600
_FLUSH = 0.05  # seconds in which pieces of text are gathered


class Live:
    """Publishes a turn's events off its path; pieces of text that come in one moment leave as one."""

    def __init__(self, bus: Bus, names: Names, session: str) -> None:
        self._bus = bus
        self._channel = names.events(session)
        self._stream = names.stream(session)
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        self._task: asyncio.Task[None] | None = None

    def __call__(self, kind: str, payload: dict[str, Any]) -> None:
        """Take an event; it goes out within a moment."""
        last = self._waiting[-1] if self._waiting else None
        if last and last[0] == kind and kind in ("chunk", "thinking"):
            last[1]["content"] += payload["content"]
        else:
            self._waiting.append((kind, dict(payload)))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        await asyncio.sleep(_FLUSH)
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            for kind, payload in waiting:
                text = json.dumps({"event": kind, **payload}, ensure_ascii=False, default=str)
                try:
                    await self._bus.command("XADD", self._stream, "MAXLEN", "~", _KEPT, "*", "data", text)
                    await self._bus.publish(self._channel, text)
                except PromptDockError as error:
                    log.get().debug("A live event was not sent", why=str(error))
        try:
            await self._bus.command("EXPIRE", self._stream, _LIFE)
        except PromptDockError:
            return

    async def close(self) -> None:
        """Wait until what was taken is out."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=2)
