"""One process of a side: `python -m benchmarks.peers.part (hub|serve|ask) MODULE[:SIDE] URL`.

`ask` reads a line `IN_FLIGHT SECONDS` and writes the lap as JSON, again and again; `first` waits for an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import sys
from dataclasses import asdict
from functools import partial
from typing import Any

from benchmarks import race
from benchmarks.side import Side


def load(name: str, url: str) -> Any:
    """The side of that name: a module of peers, or one of our own after a colon."""
    module, _, own = name.partition(":")
    found: Any = importlib.import_module(module)
    return (found.SIDES[own] if own else found.side)(url)


async def ask(side: Side) -> None:
    """Obey stdin until it ends."""
    await side.open()
    print("open", flush=True)
    # A client that is not asyncio's makes its laps itself.
    lap = getattr(side, "lap", None) or partial(race.lap, side)
    while words := (await asyncio.to_thread(sys.stdin.readline)).split():
        if words[0] == "first":
            await _first(side)
            print("answered", flush=True)
        else:
            print(json.dumps(asdict(await lap(int(words[0]), float(words[1])))), flush=True)
    await side.close()


async def _first(side: Side) -> None:
    """Until it is answered: what nobody hears yet is asked again."""
    while True:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(side.ask(), 0.2)
            return
        await asyncio.sleep(0.01)


def main(role: str, name: str, url: str) -> None:
    """Run it."""
    side = load(name, url)
    if role == "serve" and hasattr(side, "work"):
        side.work()  # a worker with a loop of its own, which is not asyncio's
        return
    try:
        import uvloop
    except ImportError:  # a peer that has no use for it
        asyncio.run(_role(role, side))
    else:
        uvloop.run(_role(role, side))


async def _role(role: str, side: Any) -> None:
    match role:
        case "hub":
            await side.hub()
        case "serve":
            await side.serve()
        case _:
            await ask(side)


if __name__ == "__main__":
    main(*sys.argv[1:4])
