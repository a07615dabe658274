"""The bus as a client has it: made when it is first needed, and found again where the embedded server moved to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from shared import log
from shared.bus import embedded
from shared.bus.base import Bus, OnMessage, OnReady
from shared.bus.keys import CHATTER, Names
from shared.client import connect, elsewhere
from shared.errors import BusUnreachable
from shared.settings import Settings


class ClusterConnection:
    """The way to the cluster of these settings, whatever server that is at the moment."""

    def __init__(self, settings: Settings, names: Names) -> None:
        self._settings, self._names = settings, names
        self._url = ""
        self._bus: Bus | None = None
        self._moves = asyncio.Event()

    @property
    def bus(self) -> Bus:
        """The bus, made on first use; BusUnreachable where no cluster runs."""
        if self._bus is None:
            self._url = elsewhere.address(self._settings)
            self._bus = connect.make_bus(self._url, self._settings)
        return self._bus

    @property
    def url(self) -> str:
        """Where the bus is; it may hold a password."""
        return self._url or embedded.address(self._settings)

    async def reach(self) -> None:
        """BusUnreachable, with what to do, where no Redis answers."""
        try:
            await self.bus.command("PING")
        except BusUnreachable as error:
            if self._settings.redis_url is None:
                raise
            where = log.redact(self._url)
            raise BusUnreachable(
                f"Redis does not answer at {where}", error.why, "start it, or correct REDIS_URL"
            ) from error

    async def moved(self) -> None:
        """Look whether the embedded server listens somewhere else by now, and go there."""
        try:
            url = embedded.address(self._settings)
        except BusUnreachable:
            return
        if url == self._url or self._bus is None:
            return
        old, self._bus = self._bus, None
        moves, self._moves = self._moves, asyncio.Event()
        moves.set()
        await old.close()

    async def subscribe(
        self, channels: Sequence[str], patterns: Sequence[str], take: OnMessage, ready: OnReady
    ) -> None:
        """Listen until cancelled, on whatever server the cluster is."""
        key = self._names.queue(CHATTER)
        while True:
            moves = self._moves
            listener = self.bus.listener(channels, take, ready, key, patterns)
            run, leave = asyncio.create_task(listener.run()), asyncio.create_task(moves.wait())
            try:
                await asyncio.wait({run, leave}, return_when=asyncio.FIRST_COMPLETED)
                if run.done():
                    run.result()
            finally:
                for task in (run, leave):
                    task.cancel()
                await asyncio.gather(run, leave, return_exceptions=True)

    async def close(self) -> None:
        """End the bus, if there was one."""
        if self._bus is not None:
            await self._bus.close()
