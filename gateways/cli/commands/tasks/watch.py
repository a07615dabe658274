"""`tasks watch`: a task while it is done, to its end."""

from __future__ import annotations

import contextlib

from gateways.cli import screen
from gateways.cli.commands.tasks import show as records
from shared.client import Client
from shared.client.views.tasks import tasks
from shared.client.views.tasks.watch import Seen, TaskWatch
from shared.settings import Settings

_MARKS = {"state": "", "act": "  ", "failed": "  failed ", "question": "asks: ", "again": "failed: "}


async def watch(settings: Settings, name: str, as_json: bool) -> int:
    """0 when it is completed or waits for a person's look, else 1; Ctrl-C only ends the watching."""
    async with Client(settings) as client:
        await client.reach()
        watching = TaskWatch(client, name)
        async with contextlib.aclosing(watching.seen()) as happening:
            async for seen in happening:
                _show(seen, as_json)
        card = await tasks.task(client, name)
    if as_json:
        result = card["results"][-1] if card["results"] else None
        screen.record({"event": "ended", "ok": watching.ok, "state": card["status"], "result": result})
    else:
        records.ended(card)
    return 0 if watching.ok else 1


def _show(seen: Seen, as_json: bool) -> None:
    if as_json:
        screen.record({"event": seen.kind, **seen.detail})
    elif seen.block is not None and screen.draws():
        screen.write([seen.block], demo=False)
    else:
        screen.out(f"{_MARKS.get(seen.kind, '')}{seen.text}")
