"""Measure what PromptDock costs, and print it: as ratios to plain publish and answer where there is one."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import uvloop

from benchmarks import (
    bus,
    cluster,
    execute,
    idle,
    long,
    machine,
    memory,
    prefix,
    search,
    tasks,
    turn,
    view,
    web,
    worker,
)
from benchmarks.bus import Size

PARTS = ("bus", "turn", "worker", "cluster", "idle", "execute", "view", "prefix", "web")
ALONE = ("tasks", "search", "memory", "long")  # measured only when it is named
FULL = Size(rounds=9, seconds=0.4, levels=(1, 32, 256))
QUICK = Size(rounds=3, seconds=0.1, levels=(1, 32))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"of {', '.join(PARTS)}, all by default; or tasks, search, memory, long",
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: rougher figures")
    given = parser.parse_args()
    if unknown := set(given.parts) - {*PARTS, *ALONE}:
        parser.error(f"there is no part called {', '.join(sorted(unknown))}")
    size = QUICK if given.quick else FULL
    print("\n".join(machine.facts()))
    with tempfile.TemporaryDirectory(prefix="promptdock-bench-") as home:
        for part in given.parts or PARTS:
            run(part, Path(home), size)


def run(part: str, home: Path, size: Size) -> None:
    """Measure one part and print it."""
    few = max(1, size.rounds // 3)
    match part:
        case "bus":
            uvloop.run(bus.measure(home, size))
        case "turn":
            uvloop.run(turn.measure(home, size.rounds, size.seconds, size.levels[:2]))
        case "worker":
            worker.measure(home, few)
        case "cluster":
            cluster.measure(home, few)
        case "idle":
            idle.measure(home, 60.0 if size is FULL else 15.0)
        case "execute":
            uvloop.run(execute.measure(home, 2 * size.seconds))
        case "view":
            view.measure()
        case "prefix":
            prefix.measure(home, *((prefix.TURNS, 180.0) if size is FULL else (16, 0.0)))
        case "web":
            uvloop.run(web.measure(home, 20.0 if size is FULL else 6.0))
        case "search":
            uvloop.run(search.measure(home, search.FULL if size is FULL else search.QUICK, 100))
        case "memory":
            uvloop.run(memory.measure(home, memory.FULL if size is FULL else memory.QUICK, 150))
        case "long":
            long.measure(home, long.TURNS if size is FULL else 100)
        case "tasks":
            full = (tasks.FULL, tasks.SLOW) if size is FULL else (tasks.QUICK, tasks.QUICK_SLOW)
            tasks.measure(home, *full)


if __name__ == "__main__":
    main()
