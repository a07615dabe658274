"""What a server may send: a bound on each message and on how much comes in a while, and the watch over both."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

MESSAGE = 4 * 1024 * 1024  # bytes of one message
_WINDOW = 5.0  # seconds
_MESSAGES = 2000  # in that while
_BYTES = 48 * 1024 * 1024
TOOLS = 128  # of one server
PAGES = 20  # of a list
LISTED = 256  # resources, or prompts, of one server that are told
DESCRIPTION = 2000  # characters
SCHEMA = 16 * 1024  # characters of one tool's arguments
SCHEMAS = 256 * 1024  # of all of a server's tools together
DESCRIBED = 400  # characters of an error of a server's that are told


class Flood(Exception):
    """It sends more than anybody could read; `str()` says what."""


@dataclass
class Watch:
    """Over one session: what has come in this while, and why it cannot go on."""

    broken: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    _since: float = field(default_factory=time.monotonic)
    _messages: int = 0
    _bytes: int = 0

    def took(self, size: int, messages: int = 1) -> None:
        """Count what came; Flood where it is too much."""
        now = time.monotonic()
        if now - self._since > _WINDOW:
            self._since, self._messages, self._bytes = now, 0, 0
        self._messages += messages
        self._bytes += size
        if self._messages > _MESSAGES:
            self.flooded(f"it sent more than {_MESSAGES} messages in {_WINDOW:.0f} s")
        if self._bytes > _BYTES:
            self.flooded(f"it sent more than {_BYTES // 1024**2} MiB in {_WINDOW:.0f} s")

    def too_long(self) -> None:
        """Flood: one message is longer than any may be."""
        self.flooded(f"it sent a message of more than {MESSAGE // 1024**2} MiB")

    def flooded(self, why: str) -> None:
        """Say why it ends, and end it."""
        self.fail(why)
        raise Flood(why)

    def fail(self, why: str) -> None:
        """It cannot go on; the first reason counts."""
        self.why = self.why or why
        self.broken.set()
