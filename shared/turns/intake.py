"""The intake: takes plain PUBLISH in exactly once and in order, however many replicas hear it.

What we send ourselves carries `via: <channel>` and is in the inbox already; the intake only wakes the worker for
it. Plain messages are numbered: on each (re)connect a marker is published on the same connection's channels, and
from then on all intakes count alike, because one server delivers in one order. Identity is position, not content.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from shared import log
from shared.bus import messages, reading
from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT
from shared.errors import BadMessage, PromptDockError, Refused
from shared.turns import routing
from shared.turns.handoff import Handoff
from shared.turns.queue import Mail, Queue
from shared.turns.signatures import Signatures

# Called for each message that came: its channel and content, or None where the queue should be looked at.
OnArrival = Callable[[str, dict[str, Any] | None], None]
_Plain = tuple[int, int, str, bytes]  # a plain message: k, i, channel, data
_Task = _Plain | int  # or a numbering to close
# How much one call hands in: a worker whose event loop is busy would fall behind with one call for each.
_BATCH, _BYTES = 64, 1024 * 1024


class Intake:
    """One replica's subscription to a queue's channels."""

    def __init__(
        self,
        queue: Queue,
        channels: Sequence[str],
        on_message: OnArrival,
        plain: Sequence[str],
        handoff: Handoff | None = None,
        signatures: Signatures | None = None,
        here: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.queue = queue
        self.names = queue.names
        self.ready = asyncio.Event()
        self._notify = on_message
        self._plain = frozenset(plain)  # channels whose plain messages are taken in
        self._handoff = handoff
        self._signatures = signatures  # without one everybody is believed
        self._here = here  # the agents that workers of the cluster serve now
        self._joined: int | None = None
        self._count = 0
        self._pending: deque[_Task] = deque()
        self._came = asyncio.Event()
        subscribed = [*channels, queue.marker, queue.wake_up, *([handoff.channel] if handoff else [])]
        self._listener = queue.bus.listener(subscribed, self._on_message, self._on_ready, queue.prefix)

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
        gap = asyncio.get_running_loop().time() - broke
        if await self.queue.rejoin(int(gap * 1000)):
            warning = "Nobody listened for a while: plain messages of that time may be lost"
            log.get().warning(warning, seconds=round(gap, 2))

    def _on_message(self, channel: str, data: bytes) -> None:
        if channel == self.queue.marker:
            if not (data.isdigit() and len(data) < 16):
                return  # not ours: a marker is a number that a script counted
            if self._joined is not None:
                self._put(self._joined)
            self._joined, self._count = int(data), 0
            self.ready.set()
            self._notify("", None)  # what came while nobody listened
            return
        if self._handoff is not None and channel == self._handoff.channel:
            self._handoff.on_message(data)
            return
        if channel not in self._plain:
            self._notify(channel, _look(data) or {"data": data.decode("utf-8", "replace")})
            return
        ours = _look(data) if b'"via"' in data else None
        if ours is not None and ours.get("via") == channel:
            self._notify(channel, ours)
        elif self._joined is not None:
            self._count += 1
            self._put((self._joined, self._count, channel, data))

    def _put(self, task: _Task) -> None:
        self._pending.append(task)
        self._came.set()

    async def _hand_in(self) -> None:
        while True:
            while not self._pending:
                self._came.clear()
                await self._came.wait()
            task = self._pending.popleft()
            try:
                if isinstance(task, int):
                    await self.queue.close_numbering(task)
                else:
                    await self._take_in(self._with_next(task))
            except PromptDockError as error:  # a key of the wrong kind: what comes next may be taken in
                log.get().error("Messages could not be taken in", why=str(error))

    def _with_next(self, first: _Plain) -> list[_Plain]:
        """A message, and what came meanwhile behind it in the same numbering."""
        batch, size = [first], len(first[3])
        while self._pending and len(batch) < _BATCH and size < _BYTES:
            task = self._pending[0]
            if isinstance(task, int) or task[0] != first[0]:
                break
            self._pending.popleft()
            batch.append(task)
            size += len(task[3])
        return batch

    async def _take_in(self, batch: list[_Plain]) -> None:
        mails: list[tuple[int, Mail]] = []
        notices: list[tuple[str, dict[str, Any] | None]] = []
        for _, i, channel, data in batch:
            mail, content = self._sort(channel, data)
            if mail is not None and mail.place == "answer" and (agent := await self._elsewhere(mail, data)):
                mail = routing.dead(self.names, channel, data, _faked(agent))
                log.get().warning("An answer was refused", request=mail.session, why=mail.reason)
            if mail is None:
                self._notify(channel, content)
            else:
                mails.append((i, mail))
                notices.append((channel, content))
        for notice, taken in zip(notices, await self._ingest(batch[0][0], mails), strict=True):
            if taken == 1:
                self._notify(*notice)

    async def _elsewhere(self, mail: Mail, data: bytes) -> str:
        """The agent in whose queue the request of a plain answer is, where it is here to answer by itself; else "".

        Its own answer comes by a script. So a program may take an agent's place, and cannot speak beside it.
        """
        names = sorted(set(self._here()) - {self.queue.agent})
        if self._signatures is None or self._signatures.answers(mail.channel, reading.read(data)):
            return ""
        for name in names:
            if await self.queue.bus.command("EXISTS", self.names.keys(name).message(mail.session)):
                return name
        return ""

    async def _ingest(self, k: int, mails: list[tuple[int, Mail]]) -> list[int]:
        if not mails:
            return []
        output = self.names.channel(CHATTER_OUTPUT)
        try:
            taken = await self.queue.ingest(k, mails, output)
            while taken[0] == -2:
                await asyncio.sleep(0.03)  # older intakes still hand in
                taken = await self.queue.ingest(k, mails, output)
        except PromptDockError as error:
            if len(mails) > 1:  # one of them is to blame: the others are not
                return [code for mail in mails for code in await self._ingest(k, [mail])]
            log.get().error("A message could not be taken in", why=str(error))
            return [0]
        return taken

    def _sort(self, channel: str, data: bytes) -> tuple[Mail | None, dict[str, Any] | None]:
        try:
            content = reading.read(data)
            trusted = True
            if self._signatures is not None:
                content, trusted = self._signatures.judge(channel, content)
                data = json.dumps(content, ensure_ascii=False).encode()
            if channel == self.names.channel(HUMAN_INPUT):
                return routing.human(self.names, messages.human(content), data, trusted), content
            message = messages.agent(content)
            if self.names.agent(message.to) != channel:
                raise BadMessage(f"the message is for {message.to!r}", f"it was published on {channel}")
            return routing.agent(self.names, message, data), content
        except BadMessage as error:
            refused = isinstance(error, Refused)
            event = "A message was refused" if refused else "Failed to parse message"
            log.get().error(event, channel=channel, why=str(error))
            log.get().info("Continuing normally")
            return routing.dead(self.names, channel, data, error), None


def _faked(agent: str) -> Refused:
    return Refused(
        f"the answer must come from {agent}, which is here",
        "nobody signed it",
        f"promptdock up --without {agent} lets a program take its place",
    )


def _look(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
