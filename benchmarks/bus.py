"""The bus: a round trip and a throughput, kept durably, beside the same without any keeping."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.race import Laps, race, ratio, typical
from benchmarks.server import Sync, process, server
from benchmarks.side import Side
from benchmarks.sides import SIDES

BASE = next(iter(SIDES))


@dataclass(frozen=True)
class Size:
    """How long is measured."""

    rounds: int
    seconds: float  # of a lap
    levels: Sequence[int]  # requests in flight


async def measure(home: Path, size: Size, syncs: Sequence[Sync] = ("everysec", "always")) -> None:
    """Race all sides on a server that syncs each second, then on one that syncs each write; print both."""
    print(f"\nAsked and answered over Redis, median of {size.rounds} rounds of {size.seconds} s each:")
    for name, side in SIDES.items():
        print(f"  {name:9} {side.about}")
    for sync in syncs:
        laps = await _on(home / sync, sync, size)
        print(f"\nappendfsync {sync}")
        for line in table(laps, size.levels):
            print(line)


async def _on(home: Path, sync: Sync, size: Size) -> Laps:
    async with contextlib.AsyncExitStack() as stack:
        url = stack.enter_context(server(home, sync))
        sides: dict[str, Side] = {}
        for name, make in SIDES.items():
            stack.enter_context(process("-m", "benchmarks.replica", name, url, home=home))
            sides[name] = make(url)
            await sides[name].open()
            stack.push_async_callback(sides[name].close)
        await _up(sides)
        return await race(sides, size.levels, size.rounds, size.seconds)


async def _up(sides: dict[str, Side]) -> None:
    """Until each replica answers; a plain question that nobody hears yet is simply asked again."""
    for side in sides.values():
        await side.begin()
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(side.ask(), 0.5)
                    break
        await side.end()


def table(laps: Laps, levels: Sequence[int]) -> list[str]:
    """Microseconds and round trips per second by number in flight; in brackets, times that of the base."""
    names = list(dict.fromkeys(name for name, _ in laps))
    lines = [f"  {'':9}" + "".join(f"{f'{level} in flight':>48}" for level in levels)]
    lines.append(f"  {'':9}" + f"{'p50 us':>16}{'p99 us':>16}{'per s':>16}" * len(levels))
    for name in names:
        cells = [
            f"{typical(laps[name, level], what):9.0f} ({ratio(laps[name, level], laps[BASE, level], what):4.2f})"
            for level in levels
            for what in ("p50", "p99", "rate")
        ]
        lines.append(f"  {name:9}" + "".join(f"{cell:>16}" for cell in cells))
    return lines
