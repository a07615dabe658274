"""What Redis is to us.

Above stand the turns (scripts on one agent's keys), presence and the client. Below stands `redis`, on
redis-py. Every call raises BusUnreachable when no answer came; whoever calls decides whether it is safe to
call again (scripts of ours are: they are written so that a repetition is recognised).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

Argument = str | bytes | int | float
OnMessage = Callable[[str, bytes], None]  # channel, data; must not block
# Called between the last message of the time before and the first of this subscription; what it returns
# runs beside the messages.
OnReady = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Script:
    """A Lua script that touches the keys of one hash tag."""

    name: str
    source: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.source.encode()).hexdigest())

    @classmethod
    def read(cls, package: str, name: str) -> Script:
        """The script in the file `name.lua` of a package."""
        return cls(name, resources.files(package).joinpath(f"{name}.lua").read_text("utf-8"))


class Listener(ABC):
    """One subscription: its own connection, its channels, in the order in which the server sends.

    `broke` is when the connection broke last, by the clock of the event loop; 0 as long as it never did.
    """

    broke: float = 0.0

    @abstractmethod
    async def run(self) -> None:
        """Listen until cancelled, reconnecting by itself; `on_ready` runs after each (re)subscription."""


class Bus(ABC):
    """Commands, scripts and subscriptions on one Redis."""

    @abstractmethod
    async def script(self, script: Script, key: str, *arguments: Argument) -> Any:
        """Run a script on the server that owns `key`; an error reply is a PromptDockError."""

    @abstractmethod
    async def command(self, *arguments: Argument, key: str | None = None) -> Any:
        """Run one command; `key` says which of several servers it concerns, else the first argument does."""

    @abstractmethod
    async def publish(self, channel: str, data: bytes | str) -> int:
        """Plain PUBLISH; how many heard it."""

    @abstractmethod
    async def read(self, cursors: dict[str, str], block_ms: int, count: int = 500) -> list[StreamEntry]:
        """Entries of streams after their cursors; waits up to `block_ms` for the first."""

    @abstractmethod
    def listener(
        self,
        channels: Sequence[str],
        on_message: OnMessage,
        on_ready: OnReady,
        key: str,
        patterns: Sequence[str] = (),
    ) -> Listener:
        """A subscription on the server that owns `key`."""

    @abstractmethod
    async def listeners(self, channel: str) -> int:
        """How many connections subscribe to a channel, by its exact name."""

    @abstractmethod
    async def close(self) -> None:
        """Give back all connections."""


@dataclass(frozen=True)
class StreamEntry:
    """One entry of a stream."""

    stream: str
    id: str
    fields: dict[str, bytes]
