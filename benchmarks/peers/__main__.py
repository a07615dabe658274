"""Race PromptDock's durable request and answer with other people's frameworks, on this machine, in one run."""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine
from benchmarks.peers import installed
from benchmarks.peers.contender import Contender, contender
from benchmarks.race import Laps, ratio, typical
from benchmarks.server import Sync, server

PEERS = ("faststream", "taskiq", "arq", "celery", "autogen")
LEVELS = (1, 100)


@dataclass(frozen=True)
class Entry:
    """Who takes part, on which server, and from which environment."""

    side: str
    sync: Sync
    python: Path = Path(sys.executable)
    about: str = ""


# The first is what the others are compared with. Peers keep nothing on disk: that is how they are quickest.
OURS = {
    "ours": Entry("benchmarks.sides:message", "everysec", about="kept at each step, synced each second"),
    "ours, always": Entry("benchmarks.sides:message", "always", about="kept at each step, each write synced"),
    "raw sockets": Entry("benchmarks.sides:raw", "off", about="the same two hops packed by hand: the floor"),
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(PEERS)}; all by default")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each lap")
    given = parser.parse_args()
    if unknown := set(given.peers) - set(PEERS):
        parser.error(f"there is no peer called {', '.join(sorted(unknown))}")
    entries = OURS | dict(_peers(given.peers or PEERS))
    print("\n".join(machine.facts()))
    print(f"\nA request to a worker process and its awaited answer, {given.rounds} rounds in turn:")
    for name, entry in entries.items():
        print(f"  {name:13} {entry.about}")
    with tempfile.TemporaryDirectory(prefix="promptdock-peers-") as home:
        print("\n".join(["", *race(entries, Path(home), given.rounds, given.seconds)]))


def _peers(names: tuple[str, ...] | list[str]) -> Iterator[tuple[str, Entry]]:
    """Those that can be installed; the others are named."""
    for name in names:
        try:
            python = installed.python(name)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name} could not be installed here and takes no part: {error}")
            continue
        about = _about(name, python)
        yield name, Entry(f"benchmarks.peers.{name}", "off", python, f"{installed.release(name)}: {about}")


def _about(name: str, python: Path) -> str:
    """How the peer is set, as its module says."""
    code = f"import benchmarks.peers.{name} as peer; print(peer.side.about)"
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(
        [python, "-c", code], cwd=root, capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def race(entries: dict[str, Entry], home: Path, rounds: int, seconds: float) -> list[str]:
    """The table: laps in turn, so that a busy machine is busy for all; the first lap of each warms up."""
    with contextlib.ExitStack() as stack:
        syncs = dict.fromkeys(entry.sync for entry in entries.values())
        urls = {sync: stack.enter_context(server(home / sync, sync)) for sync in syncs}
        field = {
            name: stack.enter_context(contender(entry.side, urls[entry.sync], entry.python, home))
            for name, entry in entries.items()
        }
        laps: Laps = {(name, level): [] for name in field for level in LEVELS}
        idle = {name: each.memory() for name, each in field.items()}
        for number in range(rounds + 1):
            names = list(field)
            first = number % len(names)
            for level in LEVELS:
                for name in names[first:] + names[:first]:
                    lap = field[name].lap(level, seconds)
                    if number:
                        laps[name, level].append(lap)
        return _table(field, laps, idle)


def _table(field: dict[str, Contender], laps: Laps, idle: dict[str, float]) -> list[str]:
    base = next(iter(field))
    columns = [
        ("1: p50 ms", 1, "p50", 1e-3),
        ("p99 ms", 1, "p99", 1e-3),
        ("100: p50 ms", 100, "p50", 1e-3),
        ("p99 ms", 100, "p99", 1e-3),
        ("a second", 100, "rate", 1.0),
    ]
    head = (
        f"  {'':13}"
        + "".join(f"{name:>18}" for name, *_ in columns)
        + f"{'start s':>9}{'MB':>7}{'MB then':>9}"
    )
    lines = [head]
    for name, each in field.items():
        cells = []
        for _, level, what, scale in columns:
            own, first = laps[name, level], laps[base, level]
            cells.append(f"{typical(own, what) * scale:9.2f} ({ratio(own, first, what):5.2f})")
        more = f"{each.start_up:9.2f}{idle[name]:7.1f}{each.memory():9.1f}"
        lines.append(f"  {name:13}" + "".join(f"{cell:>18}" for cell in cells) + more)
    ours = laps[base, 100]
    peers = [name for name in field if name not in OURS]
    if peers:
        best = min(ratio(ours, laps[name, 100], "rate") for name in peers)
        lines.append(f"  against the quickest peer, ours answers {best:.1f} times as many a second")
    return lines


if __name__ == "__main__":
    main()
