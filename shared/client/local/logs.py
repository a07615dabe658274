"""What the workers logged: their files in this home, else the Store's rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from shared.client.client import Client
from shared.client.text import times
from shared.errors import UsageError

LogLine = dict[str, Any]
LEVELS = ("debug", "info", "warning", "error", "critical")
_LOOK = 0.2  # seconds between looks at files that are followed
_TAIL = 512 * 1024  # bytes of a file's end that are read for its last lines


def files(home: Path, agent: str | None) -> dict[str, Path]:
    """The log files of this home, by agent."""
    found = {path.stem: path for path in sorted((home / "logs").glob("*.log"))}
    if agent is None:
        return found
    if found and agent not in found:
        raise UsageError(f"{agent!r} has logged nothing", f"there are: {', '.join(found)}")
    return {agent: found[agent]} if agent in found else {}


@dataclass(frozen=True)
class Wanted:
    """Which lines: of one agent, of this level and above, of this moment and later; so many of the newest."""

    agent: str | None = None
    count: int = 50
    level: str = "debug"
    since: datetime | None = None

    @property
    def chosen(self) -> bool:
        """Whether some lines are left out."""
        return self.level != LEVELS[0] or self.since is not None

    def passes(self, line: LogLine) -> bool:
        """Whether a line is one of them; one that is no record, as of a traceback, has no level and passes."""
        level = str(line.get("level", "")).casefold()
        if level in LEVELS and LEVELS.index(level) < LEVELS.index(self.level):
            return False
        at = times.parsed(line.get("timestamp"))
        return self.since is None or at is None or at >= self.since


async def last(client: Client, wanted: Wanted) -> list[LogLine]:
    """The last lines, in the order of their times."""
    found = files(client.settings.home, wanted.agent)
    if not wanted.count:
        return []
    if found:
        lines = [line for name, path in found.items() for line in _end(name, path, wanted)]
        return sorted(lines, key=lambda line: str(line.get("timestamp", "")))[-wanted.count :]
    return await _stored(client, wanted)


async def _stored(client: Client, wanted: Wanted) -> list[LogLine]:
    from shared.store.records import Log

    store = await client.store()
    where: dict[str, Any] = {"agent": wanted.agent} if wanted.agent else {}
    where["level"] = ("in", list(LEVELS[LEVELS.index(wanted.level) :]))
    if wanted.since:
        where["created_at"] = ("ge", wanted.since)
    rows = await store.select(Log, where, order=[("created_at", "desc")], limit=wanted.count)
    return [
        {
            "timestamp": row.created_at.isoformat(),
            "agent": row.agent,
            "level": row.level,
            "event": row.message,
            **row.metadata,
        }
        for row in reversed(rows)
    ]


def _end(agent: str, path: Path, wanted: Wanted) -> list[LogLine]:
    """The last lines of a file; of those that are looked for, all of it is read."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0 if wanted.chosen else max(0, size - _TAIL))
        text = file.read()
    lines = (_line(agent, raw) for raw in text.splitlines()[0 if wanted.chosen else -wanted.count :])
    return [line for line in lines if wanted.passes(line)]


def _line(agent: str, raw: bytes) -> LogLine:
    text = raw.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return {"agent": agent, **value} if isinstance(value, dict) else {"agent": agent, "event": text}


@dataclass
class _Tail:
    """One file that is followed; one that was replaced is read anew."""

    agent: str
    path: Path
    at: int
    rest: bytes = field(default=b"")

    def more(self) -> Iterator[LogLine]:
        """The lines that came since."""
        try:
            size = self.path.stat().st_size
            self.at = 0 if size < self.at else self.at
            with self.path.open("rb") as file:
                file.seek(self.at)
                data = file.read()
        except OSError:
            return
        self.at += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        yield from (_line(self.agent, line) for line in lines if line.strip())


async def follow(client: Client, wanted: Wanted) -> AsyncGenerator[LogLine, None]:
    """The lines of this home that come from now on, also of agents that start later."""
    home, agent = client.settings.home, wanted.agent
    tails = {name: _Tail(name, path, path.stat().st_size) for name, path in files(home, agent).items()}
    while True:
        for name, path in files(home, None).items():
            if name not in tails and agent in (None, name):
                tails[name] = _Tail(name, path, 0)
        for tail in tails.values():
            for line in tail.more():
                if wanted.passes(line):
                    yield line
        await asyncio.sleep(_LOOK)
