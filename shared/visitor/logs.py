"""What the workers logged: their files in this home, else the Store's rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.errors import UsageError
from shared.visitor.visitor import Visitor

Line = dict[str, Any]
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


async def last(visitor: Visitor, agent: str | None, count: int) -> list[Line]:
    """The last lines, in the order of their times."""
    found = files(visitor.settings.home, agent)
    if not count:
        return []
    if found:
        lines = [line for name, path in found.items() for line in _end(name, path, count)]
        return sorted(lines, key=lambda line: str(line.get("timestamp", "")))[-count:]
    return await _stored(visitor, agent, count)


async def _stored(visitor: Visitor, agent: str | None, count: int) -> list[Line]:
    from shared.store.records import Log

    store = await visitor.store()
    where = {"agent": agent} if agent else {}
    rows = await store.select(Log, where, order=[("created_at", "desc")], limit=count)
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


def _end(agent: str, path: Path, count: int) -> list[Line]:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        text = file.read()
    return [_line(agent, raw) for raw in text.splitlines()[-count:]] if text else []


def _line(agent: str, raw: bytes) -> Line:
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

    def more(self) -> Iterator[Line]:
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


async def follow(visitor: Visitor, agent: str | None) -> AsyncGenerator[Line, None]:
    """The lines of this home that come from now on, also of agents that start later."""
    home = visitor.settings.home
    tails = {name: _Tail(name, path, path.stat().st_size) for name, path in files(home, agent).items()}
    while True:
        for name, path in files(home, None).items():
            if name not in tails and agent in (None, name):
                tails[name] = _Tail(name, path, 0)
        for tail in tails.values():
            for line in tail.more():
                yield line
        await asyncio.sleep(_LOOK)
