"""Live events of a session: published, and kept in a capped stream for readers who come back."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from shared import log
from shared.bus import scripts
from shared.bus.activity import Activity
from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.errors import PromptDockError
from shared.redaction import StreamRedactor, redacted

_FLUSH = 0.05  # seconds in which pieces of text are gathered
_PIECES = ("chunk", "thinking")


class EventStream:
    """Publishes a turn's events off its path; pieces of text that come in one moment leave as one.

    No secret is in any of them. What ends a piece and may be the beginning of one waits for the
    next piece of its text.
    """

    def __init__(self, bus: Bus, names: Names, session: str, activity: Activity | None = None) -> None:
        self._bus, self._activity = bus, activity
        self._channel = names.events(session)
        self._stream = names.stream(session)
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._sending = False
        self._redactor = StreamRedactor()
        self._telling: tuple[str, int] = ("", 0)  # of which text what is held back is a part

    def __call__(self, kind: str, payload: dict[str, Any]) -> None:
        """Take an event; it goes out within a moment."""
        if self._activity is not None:
            self._activity.take(kind, payload)
        text = (kind, int(payload.get("part") or 0))
        if text != self._telling:
            self._say_rest()
        if kind in _PIECES:
            self._telling = text
            self._say(text, self._redactor.add(payload["content"]))
        else:
            self._waiting.append((kind, dict(payload)))
        self._send()

    def _say_rest(self) -> None:
        self._say(self._telling, self._redactor.end())
        self._telling = ("", 0)

    def _say(self, text: tuple[str, int], words: str) -> None:
        kind, part = text
        last = self._waiting[-1] if self._waiting else None
        if last and last[0] == kind and last[1].get("part", 0) == part:
            last[1]["content"] += words
        elif words:
            self._waiting.append((kind, {"content": words} | ({"part": part} if part else {})))

    def _send(self) -> None:
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH):
                await self._closing.wait()
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            self._sending = True
            try:
                await self._bus.script(scripts.EVENTS, self._stream, self._channel, *map(_text, waiting))
            except PromptDockError as error:
                log.get().debug("Live events were not sent", why=str(error))
            finally:
                self._sending = False

    async def last(self, kind: str, payload: dict[str, Any]) -> list[str]:
        """What was taken and is not out yet, and the event that closes the turn: they go out with its end.

        So it is out exactly once, whatever dies: who does not end the turn does not say that it has ended.
        """
        if self._activity is not None:
            self._activity.take(kind, payload)
        self._say_rest()
        waiting, self._waiting = [*self._waiting, (kind, dict(payload))], []
        self._closing.set()
        if self._task is not None and self._sending:  # what is on its way comes first
            await asyncio.wait([self._task], timeout=2)
        return [*map(_text, waiting)]

    @property
    def listens(self) -> tuple[str, str]:
        """The stream that keeps the events, and their channel."""
        return self._stream, self._channel

    async def close(self) -> None:
        """Let what was taken go out at once, and wait until it is out."""
        self._say_rest()
        self._send()
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=2)


def _text(event: tuple[str, dict[str, Any]]) -> str:
    kind, payload = event
    return json.dumps({"event": kind, **redacted(payload)}, ensure_ascii=False, default=str)
