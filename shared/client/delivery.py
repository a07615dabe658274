"""Delivery: letters go from the spool to the bus in their order, again and again until the server has them on disk."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from shared import log
from shared.bus.backoff import Backoff
from shared.bus.keys import Names
from shared.bus.signing import Signer
from shared.client import post
from shared.client.connection import ClusterConnection
from shared.client.spool import Letter, Spool
from shared.client.types import Sent
from shared.errors import BusUnreachable, Busy, PromptDockError

_DISK_MS = 1500  # how long one wait for the server's disk may take
_DISK_TRIES = 3
_LEAVE = 3.0  # seconds that closing waits for what is under way


class SpoolDelivery:
    """The letters of one client. `signer` is asked for with the first of them."""

    def __init__(
        self,
        connection: ClusterConnection,
        names: Names,
        spool: Spool,
        lease_ms: int,
        signer: Callable[[], Signer],
    ) -> None:
        self.spool = spool
        self._connection, self._names, self._lease_ms, self._signer = connection, names, lease_ms, signer
        self._letters: list[Letter] = []
        self._adopted = False
        self._posting = asyncio.Lock()
        self._again: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """How many letters wait for Redis to come back."""
        return len(self._letters)

    async def deliver(self, channel: str, message: dict[str, Any]) -> Sent:
        """Keep a message on disk, then post it and all that waited before it; raises what it was refused with."""
        self._adopt()
        letter = self.spool.put(channel, message)
        self._letters.append(letter)
        with contextlib.suppress(BusUnreachable):
            await self._flush(letter)
        if isinstance(letter.outcome, PromptDockError):
            raise letter.outcome
        if letter.outcome is None:
            self._retry()
            return Sent(str(message["id"]), "kept")
        return letter.outcome

    def beside(self, work: Coroutine[None, None, None]) -> None:
        """Let this go on beside everything else; closing waits a little for it."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        """Stop trying; letters that did not go out stay in the spool for the next client."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=_LEAVE)
        tasks = [*self._under_way, *([self._again] if self._again else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _adopt(self) -> None:
        """Take over, once, what earlier processes left in the spool."""
        if not self._adopted:
            self._adopted = True
            self._letters[:0] = self.spool.left()

    async def _flush(self, fresh: Letter | None = None) -> None:
        """Post in order what waits; only of the `fresh` one somebody is told that it was refused."""
        async with self._posting:
            while self._letters:
                letter = self._letters[0]
                try:
                    letter.outcome = await post.post(
                        *(self._connection.bus, self._names, letter.channel, letter.message, self._lease_ms),
                        self._signer(),
                    )
                except BusUnreachable:
                    raise
                except Busy as error:
                    if letter is not fresh:
                        raise BusUnreachable(error.what, error.why) from error
                    letter.outcome = error
                except PromptDockError as error:
                    letter.outcome = error
                self._letters.remove(letter)
                if isinstance(letter.outcome, Sent):
                    self.beside(self._on_disk(letter))
                else:
                    log.get().debug("A message was refused", why=str(letter.outcome))
                    self.spool.remove(letter)

    def _retry(self) -> None:
        if self._again is None or self._again.done():
            self._again = asyncio.create_task(self._keep_trying())

    async def _keep_trying(self) -> None:
        backoff = Backoff(first=0.1, most=2.0)
        while self._letters:
            await backoff.pause()
            await self._connection.moved()
            with contextlib.suppress(BusUnreachable):
                await self._flush()

    async def _on_disk(self, letter: Letter) -> None:
        """The letter goes when the server has the message on disk, where the server can say so."""
        try:
            for _ in range(_DISK_TRIES):
                if (await self._connection.bus.command("WAITAOF", 1, 0, _DISK_MS))[0]:
                    break
        except BusUnreachable:
            self._letters.insert(0, letter)
            self._retry()
            return
        except PromptDockError:
            pass  # a server without an append-only file, or without the command
        self.spool.remove(letter)
