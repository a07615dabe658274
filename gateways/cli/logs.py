"""`logs`: what the workers logged."""

from __future__ import annotations

import contextlib
from typing import Any

from gateways.cli import screen
from shared.settings import Settings
from shared.visitor import Visitor
from shared.visitor import logs as records

_OWN = ("timestamp", "level", "event", "agent", "exception")


async def logs(settings: Settings, agent: str | None, follow: bool, count: int, as_json: bool) -> None:
    """The last lines, then those that come."""
    async with Visitor(settings) as visitor:
        for line in await records.last(visitor, agent, count):
            _show(line, as_json)
        if follow:
            async with contextlib.aclosing(records.follow(visitor, agent)) as coming:
                async for line in coming:
                    _show(line, as_json)


def _show(line: dict[str, Any], as_json: bool) -> None:
    if as_json:
        screen.record(line)
        return
    time = str(line.get("timestamp", ""))[11:19]
    level = str(line.get("level", "")).upper()[:5]
    rest = " ".join(f"{key}={value}" for key, value in line.items() if key not in _OWN)
    trace = f"\n{line['exception']}" if line.get("exception") else ""
    screen.out(f"{time:8} {line['agent']:10} {level:5} {line.get('event', '')} {rest}".rstrip() + trace)
