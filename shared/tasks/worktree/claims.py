"""Which files the running tasks change: published, so that two of them learn of each other before they do.

For each file of a repository there is a sorted set of the tasks that change it, with the time at which each
last said so. What is not said again is forgotten, so that a worker that died holds nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from shared.bus.base import Bus
from shared.bus.keys import Names

LIFE = 1200.0  # seconds
_MOST = 2000  # files of one task that are published


class Claims:
    """The files of one task in one repository."""

    def __init__(self, bus: Bus, names: Names, repo: str, task: str) -> None:
        self._bus, self._names = bus, names
        self._repo, self._task = repo, task
        self._mine: dict[str, float] = {}

    async def claim(self, path: str) -> list[str]:
        """Say that the task changes this file; the other tasks that do, who are told of it."""
        if len(self._mine) >= _MOST and path not in self._mine:
            return []
        fresh = path not in self._mine
        await self._say(path)
        key = self._key(path)
        since = f"{time.time() - LIFE:.0f}"
        met = [name.decode() for name in await self._bus.command("ZRANGEBYSCORE", key, since, "+inf")]
        others = [name for name in met if name != self._task]
        for other in others if fresh else ():
            await self._tell(other, path)
        return others

    async def told(self) -> list[str]:
        """What others have begun to change that this task changes too, each once."""
        key = self._names.overlaps(self._repo, self._task)
        found = []
        while (text := await self._bus.command("LPOP", key)) is not None:
            found.append(text.decode())
        await self._refresh()
        return found

    async def release(self) -> None:
        """The task changes nothing any more."""
        for path in self._mine:
            await self._bus.command("ZREM", self._key(path), self._task)
        self._mine.clear()

    async def _say(self, path: str) -> None:
        now = time.time()
        key = self._key(path)
        await self._bus.command("ZADD", key, f"{now:.0f}", self._task)
        await self._bus.command("EXPIRE", key, int(LIFE))
        self._mine[path] = now

    async def _refresh(self) -> None:
        old = time.time() - LIFE / 3
        for path in [path for path, said in self._mine.items() if said < old]:
            await self._say(path)

    async def _tell(self, other: str, path: str) -> None:
        key = self._names.overlaps(self._repo, other)
        await self._bus.command("RPUSH", key, f"The task {self._task} is about to change {path}, as you do.")
        await self._bus.command("EXPIRE", key, int(LIFE))

    def _key(self, path: str) -> str:
        return self._names.changed_path(self._repo, path)


def warning(path: str, others: Iterable[str]) -> str:
    """What an agent is told before it changes a file that others change."""
    return (
        f"{path} is being changed by {', '.join(others)} too, on a branch of its own. If you change it as well, "
        "the two may not merge: keep your change to it small, or leave it if you can"
    )
