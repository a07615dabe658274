"""Rounds in turn: each side for a moment, again and again, so that a busy machine is busy for all of them."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.side import PATIENCE, Side


@dataclass(frozen=True)
class Lap:
    """One side for a moment with so many in flight; times in microseconds."""

    p50: float
    p99: float
    rate: float  # round trips per second


async def lap(side: Side, in_flight: int, seconds: float) -> Lap:
    """Keep `in_flight` requests under way for `seconds`, and at least until one is answered."""
    took: list[float] = []
    started = time.perf_counter()
    ends = started + seconds

    async def one() -> None:
        while (now := time.perf_counter()) < ends or not took:
            await side.ask()
            took.append((time.perf_counter() - now) * 1e6)

    await side.begin()
    async with asyncio.timeout(seconds + PATIENCE):
        await asyncio.gather(*(one() for _ in range(in_flight)))
    elapsed = time.perf_counter() - started
    await side.end()
    return summed(took, elapsed)


def summed(took: list[float], elapsed: float) -> Lap:
    """The lap of round trips that took so many microseconds each, within `elapsed` seconds."""
    took.sort()
    return Lap(took[len(took) // 2], took[min(len(took) - 1, len(took) * 99 // 100)], len(took) / elapsed)


Laps = dict[tuple[str, int], list[Lap]]


async def race(sides: Mapping[str, Side], levels: Sequence[int], rounds: int, seconds: float) -> Laps:
    """Laps by side and number in flight, one of each per round; a first one warms up and is not counted."""
    laps: Laps = {(name, level): [] for name in sides for level in levels}
    order = list(sides)
    for name in order:
        await lap(sides[name], max(levels), seconds / 2)
    for number in range(rounds):
        first = number % len(order)
        for level in levels:
            for name in (*order[first:], *order[:first]):
                laps[name, level].append(await lap(sides[name], level, seconds))
    return laps


def typical(laps: Sequence[Lap], what: str) -> float:
    """The median of the rounds."""
    return float(statistics.median(getattr(item, what) for item in laps))


def ratio(laps: Sequence[Lap], base: Sequence[Lap], what: str) -> float:
    """The median of each round's ratio to the base's lap of the same round."""
    pairs = zip(laps, base, strict=True)
    return float(statistics.median(getattr(item, what) / getattr(other, what) for item, other in pairs))
