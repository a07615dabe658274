"""What Chatter says, without gaps: its stream by one's own cursor, and what a foreign Chatter publishes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from shared import failpoints, log
from shared.bus.backoff import Backoff
from shared.bus.base import Bus, OnMessage, OnReady
from shared.bus.keys import CHATTER, CHATTER_OUTPUT, Names
from shared.bus.messages import Output, now
from shared.client.types import Event, Heard, Judged
from shared.errors import BusUnreachable, PromptDockError

_BLOCK_MS = 2000
_PLAIN = 1000  # outputs of a foreign Chatter that wait to be judged; more are dropped
_READY = 5.0  # seconds that a subscription may take before we go on without


def parse(data: bytes | str) -> Output | None:
    """An output; what a foreign Chatter leaves out is filled in, what is no output is None."""
    try:
        value: Any = json.loads(data)
        return Output.model_validate({"id": "", "session_id": "", "timestamp": now(), **value})
    except (ValidationError, ValueError, TypeError, RecursionError):
        log.get().debug("An output cannot be read")
        return None


class Line(Protocol):
    """What of a client is needed to listen."""

    @property
    def names(self) -> Names: ...

    @property
    def bus(self) -> Bus: ...

    async def judges(self, channel: str, data: bytes) -> Judged:
        """What becomes of words that no worker of ours keeps."""

    async def moved(self) -> object:
        """Look whether the cluster is on another server now."""

    async def subscribe(
        self, channels: Sequence[str], patterns: Sequence[str], take: OnMessage, ready: OnReady
    ) -> None:
        """Listen until cancelled."""


class Feed:
    """An async iterator of `Heard`; between `open` and `close` nothing that was said is missed."""

    def __init__(self, client: Line, after: str) -> None:
        self._client, self.cursor = client, after
        self._stream = client.names.keys(CHATTER).outputs
        self._channel = client.names.channel(CHATTER_OUTPUT)
        self._queue: asyncio.Queue[Heard | None] = asyncio.Queue()
        self._plain: asyncio.Queue[tuple[Output, bytes]] = asyncio.Queue(_PLAIN)
        self._subscribed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Start to listen; comes back when nothing can be missed any more, or Redis is away."""
        self._tasks = [asyncio.create_task(work) for work in (self._read(), self._hear(), self._judge())]
        for task in self._tasks:
            task.add_done_callback(lambda _task: self._queue.put_nowait(None))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY):
                await self._subscribed.wait()

    async def close(self) -> None:
        """Stop listening."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def __aiter__(self) -> AsyncIterator[Heard]:
        return self

    async def __anext__(self) -> Heard:
        heard = await self._queue.get()
        if heard is not None:
            return heard
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error
        raise StopAsyncIteration

    async def _read(self) -> None:
        async for entry_id, data in entries(self._client, self._stream, self.cursor):
            self.cursor = entry_id
            if output := parse(data):
                self._queue.put_nowait(Heard(output, entry_id))

    async def _hear(self) -> None:
        """A Chatter that is not ours keeps no stream: it is heard on the channel, as everybody hears it."""

        def take(_channel: str, data: bytes) -> None:
            output = parse(data)
            if output is not None and output.via != self._channel and not self._plain.full():
                self._plain.put_nowait((output, data))

        async def ready() -> None:
            self._subscribed.set()

        # By a pattern: who listens so is not counted among those who acknowledge nothing (PUBSUB NUMSUB).
        await self._client.subscribe([], [self._channel], take, ready)

    async def _judge(self) -> None:
        """Anybody may publish there: where Chatter is ours, what it says is in its stream."""
        while True:
            output, data = await self._plain.get()
            judged = await self._client.judges(self._channel, data)
            if judged != "dropped":
                said = output if judged == "taken" else output.disowned()
                self._queue.put_nowait(Heard(said, self.cursor))
            else:
                log.get().debug("What looks like an output is not shown", why="no worker of ours said it")


async def entries(client: Line, stream: str, after: str) -> AsyncGenerator[tuple[str, bytes], None]:
    """`(id, data)` of a stream's entries after a cursor, for ever; while Redis is away it waits for it."""
    backoff = Backoff()
    while True:
        try:
            found = await client.bus.read({stream: after}, _BLOCK_MS)
            backoff.reset()
        except BusUnreachable:
            await backoff.pause()
            await client.moved()
            after = "$" if failpoints.without("gap-fill") else after
            continue
        for entry in found:
            after = entry.id
            yield entry.id, entry.fields.get("data", b"")


async def events(client: Line, session: str, after: str) -> AsyncGenerator[Event, None]:
    """The live events of a session after a cursor, for ever."""
    async for entry_id, data in entries(client, client.names.stream(session), after):
        try:
            value = json.loads(data)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield Event(str(value.pop("event", "")), value, entry_id)


async def tail_of(client: Line, stream: str) -> str:
    """The cursor behind which only what comes from now on stands."""
    try:
        newest = await client.bus.command("XREVRANGE", stream, "+", "-", "COUNT", 1)
    except BusUnreachable:
        raise
    except PromptDockError:
        return "0-0"
    return str(newest[0][0].decode()) if newest else "0-0"


async def newest(client: Line) -> str:
    """The cursor of the last that Chatter said."""
    return await tail_of(client, client.names.keys(CHATTER).outputs)
