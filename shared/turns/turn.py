"""A turn that is ours: its journal, the messages that it answers, and its end.

A step is in Redis before `step` comes back. Records that are there already are not written again: whoever
claims the turn after a crash reads them and goes on behind the last.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from shared import failpoints, log
from shared.bus.activity import Activity
from shared.errors import Fenced
from shared.turns.queue import Claim, Completion, Keep, Queue, QueueEntry
from shared.turns.records import JournalRecord, Record, Records, read, unpack


def _journal(packed: Sequence[bytes]) -> Records | None:
    """A journal as it was written; None where one of its records cannot be read."""
    try:
        return read(packed)
    except Exception as error:  # whatever is in it
        log.get().error("Records of a turn cannot be read", why=str(error)[:200])
        return None


def _window(packed: Sequence[bytes]) -> list[Record] | None:
    """The end of the conversation as it was written; None where a message of it cannot be read."""
    try:
        return [unpack(data) for data in packed]
    except Exception as error:  # whatever is in it
        log.get().error("Messages of a conversation cannot be read", why=str(error)[:200])
        return None


class Turn:
    """A claimed turn. Every call raises Fenced once the lease is lost; nothing may be done after that."""

    def __init__(self, queue: Queue, claim: Claim) -> None:
        self.queue = queue
        self.session, self.epoch = claim.session, claim.epoch
        self.tries, self.fails = claim.tries, claim.fails
        self.given: list[QueueEntry] = list(claim.entries)
        journal, window = _journal(claim.journal), _window(claim.window)
        self.spoiled = journal is None  # nobody knows what was done already
        self.records: Records = journal or Records()
        self._stored = len(claim.journal)
        self.window: list[Record] = window or []
        self.held = len(claim.window)  # how many records Redis holds, readable or not
        self.seq = claim.seq if window is not None else None  # the Store has the conversation too
        self.untold = claim.untold
        self.thread = claim.thread  # where its session is held
        self.claimed_at = claim.now  # the server's milliseconds
        self._since = time.monotonic()
        # When we last requested the lease and got it: the server gave it no earlier, and who was frozen since
        # then reads the reply late.
        self.renewed = claim.requested
        self.wake_up = asyncio.Event()  # set when something may have joined
        self.lost = asyncio.Event()
        self.ended = False
        self.alone = False  # it takes in nothing more: what comes for its session opens the next turn
        self._closing = False  # its end is on its way to Redis
        self.project_id: UUID | None = None  # what its cost is booked on
        self.task_id: UUID | None = None
        self.spent: dict[str, Any] | None = None  # the budget that ended it: scope, name, dollars
        self.activity = Activity(self.id, claim.now)  # its runner says of what, its live events what is done
        self._lock = asyncio.Lock()
        self._seen = len(self.given)

    @property
    def id(self) -> str:
        """The id of the message that opened the turn; requests made in it are named after it."""
        return self.given[0].id if self.given else self.session

    def is_named(self, name: object) -> bool:
        """Whether a stop or an amendment that names this turn, or a message that it answers, is meant for it."""
        return not name or name == self.id or any(entry.id == name for entry in self.given)

    def now(self) -> int:
        """Milliseconds, by the server's clock."""
        return self.claimed_at + self.elapsed_ms()

    def elapsed_ms(self) -> int:
        """How long it is ours."""
        return int((time.monotonic() - self._since) * 1000)

    async def step(self, *records: JournalRecord, calls: Sequence[str] = ()) -> None:
        """Append to the journal, renew the lease, take what joined; answers to `calls` are awaited."""
        async with self._lock:
            self._still_ours()
            self.records.extend(records)
            fresh = () if failpoints.without("journal") else self.records[self._stored :]
            packed = [record.to_bytes() for record in fresh]
            requested = time.monotonic()
            try:
                known = -1 if self.alone else len(self.given)
                came = await self.queue.step(self.session, self.epoch, self._stored, known, packed, calls)
            except Fenced:
                self.lost.set()
                raise
            self._stored += len(packed)
            self.given.extend(came)
            self.renewed = max(self.renewed, requested)

    def keep(self, record: JournalRecord) -> None:
        """Append what the next step, or the end of the turn, will store."""
        self.records.append(record)

    async def look(self) -> None:
        """Take what joined meanwhile, if we were woken; whoever was frozen learns here that it lost its lease."""
        if self.wake_up.is_set() or self._expired():
            self.wake_up.clear()
            await self.step()
        else:
            async with self._lock:
                pass  # another who was woken takes in now what may be for us

    async def ours(self) -> None:
        """Fenced unless the lease is ours at this moment; Redis is asked only where it may have run out."""
        self._still_ours()
        while self._expired():
            await self.step()

    def _expired(self) -> bool:
        late = time.monotonic() - self.renewed > self.queue.lease_ms / 1000
        return late and not failpoints.without("clock")

    def regain(self, claim: Claim) -> bool:
        """Go on under a new claim of our own, made after a time without Redis that nobody else used.

        Where another worker ended this turn meanwhile, the claim is of the session's next message.
        """
        same = [entry.id for entry in claim.entries] == [entry.id for entry in self.given]
        if self.ended or self.lost.is_set() or not same or len(claim.journal) != self._stored:
            return False
        self.epoch, self.tries, self.renewed = claim.epoch, claim.tries, claim.requested
        return True

    def closes_before(self, claim: Claim) -> bool:
        """Whether a claim is of the session's next message, read while our end's reply is still on its way."""
        return (self.ended or self._closing) and [e.id for e in claim.entries[:1]] != [self.id]

    def joined(self) -> list[QueueEntry]:
        """What joined since the last call of this."""
        fresh, self._seen = self.given[self._seen :], len(self.given)
        return fresh

    async def send(self, channel: str, text: str, keep: Keep = "", again: str = "") -> None:
        """Send progress of this turn, or `again` an output of an earlier one."""
        self._still_ours()
        await self.queue.send(self.session, self.epoch, channel, text, keep, again)

    async def finish(self, completion: Completion) -> None:
        """Close the turn."""
        async with self._lock:
            self._still_ours()
            self._closing = True
            try:
                await self.queue.finish(self.session, self.epoch, completion)
                self.ended = True
            finally:
                self._closing = False

    async def move(self, target: str, ref: str, rows: bytes, way: str) -> bool:
        """Go on as a message of the session that it belongs to; False where that is somebody else's."""
        async with self._lock:
            self._still_ours()
            owner = await self.queue.owner(self.session)
            self.ended = await self.queue.move(self.session, self.epoch, target, owner, ref, rows, way)
        return self.ended

    async def release(self, delay_ms: int = 0, failed: bool = False) -> None:
        """Give the turn back for another try."""
        if not (self.ended or self.lost.is_set()):
            self.ended = True
            await self.queue.release(self.session, self.epoch, delay_ms, failed)

    def _still_ours(self) -> None:
        if self.lost.is_set():
            raise Fenced(f"the turn of {self.session} belongs to another worker now")
