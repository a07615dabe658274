"""The handoff: an idle worker is given the next message the moment that it is accepted.

A worker says that it is idle with the end of its last turn. The script that accepts a message then claims it for
that worker in the same write, and publishes the claim on the worker's own channel: no claim of its own is needed.
All that holds for a claim holds for it. Where nobody reads what was published, the lease runs out and another
claims it.
"""

from __future__ import annotations

from collections.abc import Callable

from shared import log
from shared.turns.queue import Claim, Queue


class Handoff:
    """Where one worker is given turns. `take` is called with each; it must not block."""

    def __init__(
        self, queue: Queue, worker: str, idle: Callable[[], bool], take: Callable[[Claim], None]
    ) -> None:
        self._queue, self._idle, self._take = queue, idle, take
        self.channel = queue.names.channel(queue.keys.handoff(worker))
        self._offer = f"{queue.lease_ms} {worker} {self.channel}"
        self._closed = False
        self.last_id = ""  # of the message that was handed over last
        queue.handoff = self._idle_offer

    def _idle_offer(self) -> str:
        return self._offer if self._idle() and not self._closed else ""

    def on_message(self, data: bytes) -> None:
        """Take the claim that came on the channel."""
        claim = self._queue.handed_over(data)
        if claim is None or not claim.entries:
            log.get().error("A turn that was given cannot be read; it is claimed when its lease ends")
            return
        self.last_id = claim.entries[0].id
        self._take(claim)

    async def close(self) -> None:
        """Be given nothing any more."""
        self._closed = True
        key = self._queue.keys.idle
        await self._queue.bus.command("ZREM", key, self._offer, key=key)
