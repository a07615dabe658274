"""The ear: takes plain PUBLISH in exactly once and in order, however many replicas hear it.

What we send ourselves carries `via: <channel>` and is in the inbox already; the ear only rings for it. Plain
messages are numbered: on each (re)connect a marker is published on the same connection's channels, and from
then on all ears count alike, because one server delivers in one order. Identity is position, not content.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from shared import log
from shared.bus import messages
from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT
from shared.errors import BadMessage, PromptDockError, Refused
from shared.turns import routing
from shared.turns.handoff import Handoff
from shared.turns.queue import Mail, Queue
from shared.turns.signatures import Signatures

# Rung for each message that came: its channel and content, or None where the queue should be looked at.
OnBell = Callable[[str, dict[str, Any] | None], None]
_Heard = tuple[int, int, str, bytes]  # a plain message: k, i, channel, data
_Task = _Heard | int  # or a numbering to close
# How much one call hands in: a worker whose event loop is busy would fall behind with one call for each.
_BATCH, _BYTES = 64, 1024 * 1024


class Intake:
    """One replica's subscription to a queue's channels."""

    def __init__(
        self,
        queue: Queue,
        channels: Sequence[str],
        on_bell: OnBell,
        plain: Sequence[str],
        seat: Handoff | None = None,
        authority: Signatures | None = None,
    ) -> None:
        self.queue = queue
        self.names = queue.names
        self.ready = asyncio.Event()
        self._on_bell = on_bell
        self._plain = frozenset(plain)  # channels whose plain messages are taken in
        self._seat = seat
        self._authority = authority  # without one everybody is believed
        self._joined: int | None = None
        self._count = 0
        self._intake: deque[_Task] = deque()
        self._came = asyncio.Event()
        heard = [*channels, queue.marker, queue.bell, *([seat.channel] if seat else [])]
        self._listener = queue.bus.listener(heard, self._on_message, self._on_ready, queue.prefix)

    async def run(self) -> None:
        """Listen and hand in until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listener.run())
            group.create_task(self._hand_in())

    def _on_ready(self) -> Awaitable[None]:
        """Forget the old numbering at once: what is heard from here on must not be counted in it."""
        self._joined = None
        return self._join()

    async def _join(self) -> None:
        broke, self._listener.broke = self._listener.broke, 0.0
        if not broke:
            await self.queue.join()
            return
        deaf = asyncio.get_running_loop().time() - broke
        if await self.queue.rejoin(int(deaf * 1000)):
            told = "Nobody listened for a while: plain messages of that time may be lost"
            log.get().warning(told, seconds=round(deaf, 2))

    def _on_message(self, channel: str, data: bytes) -> None:
        if channel == self.queue.marker:
            if not (data.isdigit() and len(data) < 16):
                return  # not ours: a marker is a number that a script counted
            if self._joined is not None:
                self._put(self._joined)
            self._joined, self._count = int(data), 0
            self.ready.set()
            self._on_bell("", None)  # what came while nobody listened
            return
        if self._seat is not None and channel == self._seat.channel:
            self._seat.heard(data)
            return
        if channel not in self._plain:
            self._on_bell(channel, _look(data) or {"data": data.decode("utf-8", "replace")})
            return
        ours = _look(data) if b'"via"' in data else None
        if ours is not None and ours.get("via") == channel:
            self._on_bell(channel, ours)
        elif self._joined is not None:
            self._count += 1
            self._put((self._joined, self._count, channel, data))

    def _put(self, task: _Task) -> None:
        self._intake.append(task)
        self._came.set()

    async def _hand_in(self) -> None:
        while True:
            while not self._intake:
                self._came.clear()
                await self._came.wait()
            task = self._intake.popleft()
            try:
                if isinstance(task, int):
                    await self.queue.shut(task)
                else:
                    await self._take_in(self._with_next(task))
            except PromptDockError as error:  # a key of the wrong kind: what comes next may be taken in
                log.get().error("Messages could not be taken in", why=str(error))

    def _with_next(self, first: _Heard) -> list[_Heard]:
        """A message, and what came meanwhile behind it in the same numbering."""
        found, size = [first], len(first[3])
        while self._intake and len(found) < _BATCH and size < _BYTES:
            task = self._intake[0]
            if isinstance(task, int) or task[0] != first[0]:
                break
            self._intake.popleft()
            found.append(task)
            size += len(task[3])
        return found

    async def _take_in(self, heard: list[_Heard]) -> None:
        mails: list[tuple[int, Mail]] = []
        rings: list[tuple[str, dict[str, Any] | None]] = []
        for _, i, channel, data in heard:
            mail, content = self._sort(channel, data)
            if mail is None:
                self._on_bell(channel, content)
            else:
                mails.append((i, mail))
                rings.append((channel, content))
        for ring, taken in zip(rings, await self._hear(heard[0][0], mails), strict=True):
            if taken == 1:
                self._on_bell(*ring)

    async def _hear(self, k: int, mails: list[tuple[int, Mail]]) -> list[int]:
        if not mails:
            return []
        output = self.names.channel(CHATTER_OUTPUT)
        try:
            taken = await self.queue.hear(k, mails, output)
            while taken[0] == -2:
                await asyncio.sleep(0.03)  # older ears still hand in
                taken = await self.queue.hear(k, mails, output)
        except PromptDockError as error:
            if len(mails) > 1:  # one of them is to blame: the others are not
                return [code for mail in mails for code in await self._hear(k, [mail])]
            log.get().error("A message could not be taken in", why=str(error))
            return [0]
        return taken

    def _sort(self, channel: str, data: bytes) -> tuple[Mail | None, dict[str, Any] | None]:
        try:
            content = messages.read(data)
            trusted = True
            if self._authority is not None:
                content, trusted = self._authority.judge(channel, content)
                data = json.dumps(content, ensure_ascii=False).encode()
            if channel == self.names.channel(HUMAN_INPUT):
                return routing.human(self.names, messages.human(content), data, trusted), content
            message = messages.agent(content)
            if self.names.agent(message.to) != channel:
                raise BadMessage(f"the message is for {message.to!r}", f"it was published on {channel}")
            return routing.agent(self.names, message, data), content
        except BadMessage as error:
            refused = isinstance(error, Refused)
            told = "A message was refused" if refused else "Failed to parse message"
            log.get().error(told, channel=channel, why=str(error))
            log.get().info("Continuing normally")
            return routing.dead(self.names, channel, data, error), None


def _look(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
