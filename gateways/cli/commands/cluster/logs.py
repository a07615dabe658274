"""`logs`: what the workers logged."""

from __future__ import annotations

import contextlib
from typing import Any

from gateways.cli import screen
from shared.client import Client
from shared.client.local import logs as records
from shared.settings import Settings

_OWN = ("timestamp", "level", "event", "agent", "exception")
_STYLES = {"warning": screen.warning, "error": screen.bad, "critical": screen.bad, "debug": screen.faint}


async def logs(settings: Settings, wanted: records.Wanted, follow: bool, as_json: bool) -> None:
    """The last lines, then those that come."""
    async with Client(settings) as client:
        lines = await records.last(client, wanted)
        with contextlib.nullcontext() if follow else screen.paged():
            for line in lines:
                _show(line, as_json)
        if follow:
            async with contextlib.aclosing(records.follow(client, wanted)) as coming:
                async for line in coming:
                    _show(line, as_json)
    if not lines and not follow and wanted.count:
        screen.talk("Nothing was logged that is like that." if wanted.chosen else "Nothing was logged yet.")


def _show(line: dict[str, Any], as_json: bool) -> None:
    if as_json:
        screen.record(line)
        return
    level = str(line.get("level", ""))
    styled = _STYLES.get(level, str)(f"{level.upper()[:5]:5}")
    rest = " ".join(f"{key}={value}" for key, value in line.items() if key not in _OWN)
    trace = f"\n{line['exception']}" if line.get("exception") else ""
    at = screen.faint(f"{screen.moment(line.get('timestamp'), seconds=True, brief=True):12}")
    screen.out(at, f" {line['agent']:10} ", styled, f" {line.get('event', '')} {rest}".rstrip() + trace)
