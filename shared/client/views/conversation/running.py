"""What is being done in a conversation right now: the turn that runs, for who comes in the middle of it."""

from __future__ import annotations

import json

from shared.bus.keys import TASKS
from shared.bus.presence import LIFE_MS
from shared.client import feed
from shared.client.client import Client
from shared.client.types import Event
from shared.client.views import status

_KEPT = 2000  # events that a session keeps
_ENDS = ("done", "error")


async def running(client: Client, session: str, until: str = "") -> list[Event]:
    """The events of the turn that runs, from its start up to a cursor; [] where none does."""
    stream = client.names.stream(session)
    found: list[Event] = []
    for entry, fields in await client.bus.command("XREVRANGE", stream, until or "+", "-", "COUNT", _KEPT):
        try:
            value = json.loads(fields[1])
        except ValueError:
            continue
        if not isinstance(value, dict):
            continue
        kind = str(value.pop("event", ""))
        if kind in _ENDS:
            return []
        found.append(Event(kind, value, entry.decode()))
        if kind == "start":
            return found[::-1]
    return []


async def marks(client: Client, session: str) -> tuple[str, str, str]:
    """The cursors of what Chatter said last, of tasks, and of a session: what comes behind them is new."""
    return await feed.newest(client), await client.mark(TASKS), await client.mark(session)


async def pulse(client: Client, agent: str, request: str) -> tuple[str, bool, int | None]:
    """What an agent that was asked did last, whether it is silent, and the milliseconds since its last heartbeat."""
    found = await status.pulse(client, agent, request)
    return found.doing, found.beat_ms is None or found.beat_ms > LIFE_MS, found.beat_ms
