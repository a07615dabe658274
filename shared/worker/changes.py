"""What changed in the Store, as its writers say on the board: who depends on tables reads them again, and waits.

A word on the board may be lost, with the worker that was to say it; who listens therefore looks again by the
clock too, but rarely.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

from shared import log
from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.errors import PromptDockError
from shared.store.records import Row

FREED = "freed"  # somebody let go of a lease
_ALL = "changed"  # as the release before says it, whatever it was


class ChangeWatch:
    """The tables that one service reads, and which of them changed since it read them; at first all."""

    def __init__(self, kinds: Sequence[type[Row]]) -> None:
        self._tables = frozenset(kind.table for kind in kinds)
        self._changed = set(self._tables)
        self._heard, self._freed = asyncio.Event(), asyncio.Event()

    def heard(self, *words: str) -> None:
        """What the board said: names of tables."""
        if FREED in words:
            self._freed.set()
        changed = self._tables if _ALL in words else self._tables.intersection(words)
        if changed:
            self._changed |= changed
            self._heard.set()

    def all(self) -> None:
        """Read everything again."""
        self._changed |= self._tables

    @property
    def changed(self) -> bool:
        """Whether something is to be read."""
        return bool(self._changed)

    @contextlib.contextmanager
    def reading(self, *kinds: type[Row]) -> Iterator[bool]:
        """Whether one of these tables changed; they count as read then, unless the reading fails."""
        due = self._changed.intersection(kind.table for kind in kinds)
        self._changed -= due
        try:
            yield bool(due)
        except BaseException:
            self._changed |= due
            raise

    async def pause(self, seconds: float, least: float, ours: bool) -> None:
        """Until a change is heard, after `least` seconds; who does not hold the lease waits until it is freed."""
        event = self._heard if ours else self._freed
        await asyncio.sleep(min(least, seconds))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds - least)):
                await event.wait()
        self._heard.clear()
        self._freed.clear()


class Changes:
    """Listens to the board for all services of one worker."""

    def __init__(self, bus: Bus, names: Names) -> None:
        self._bus, self._names = bus, names
        self._watches: list[ChangeWatch] = []

    def watch(self, *kinds: type[Row]) -> ChangeWatch:
        """Hear of these tables."""
        watch = ChangeWatch(kinds)
        self._watches.append(watch)
        return watch

    async def run(self) -> None:
        """Listen until cancelled."""

        def said(_: str, data: bytes) -> None:
            for watch in self._watches:
                watch.heard(*data.decode("utf-8", "replace").split())

        async def again() -> None:  # what was said meanwhile was not heard
            for watch in self._watches:
                watch.heard(_ALL, FREED)

        board = self._names.board
        await self._bus.listener([board], said, again, board).run()

    async def free(self) -> None:
        """Say that a lease was let go."""
        try:
            await self._bus.publish(self._names.board, FREED)
        except PromptDockError as error:
            log.get().debug("That a lease is free was not said", why=str(error))
