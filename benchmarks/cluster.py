"""The whole cluster from the command line: how long `up` takes to be ready, and `status` to answer."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.server import environment


def measure(home: Path, rounds: int) -> None:
    """Print both; the cluster has a home of its own and is ended again."""
    print(f"\nThe cluster (redis and five agents, no key), median of {rounds}:")
    ups, looks = [], []
    for number in range(rounds):
        place = home / f"cluster{number}"
        place.mkdir()
        ups.append(_timed(place, "up", "--detach"))
        try:
            looks += [_timed(place, "status") for _ in range(3)]
        finally:
            _timed(place, "down")
    for name, took in (("up", ups), ("status", looks)):
        whole, own = (statistics.median(times) for times in zip(*took, strict=True))
        print(f"  promptdock {name:6} {whole:6.2f} s, of which its own processor time {own:.2f} s")


def _timed(home: Path, *words: str) -> tuple[float, float]:
    """Seconds that a command takes from its start to its end, and seconds of processor that it used itself.

    The second hardly depends on what else the machine does; a cluster that stays is no part of it.
    """
    started, before = time.monotonic(), _used()
    subprocess.run(
        [sys.executable, "-m", "gateways.cli", *words],
        cwd=home,
        env=environment(PROMPTDOCK_HOME=str(home / ".promptdock")),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    return time.monotonic() - started, _used() - before


def _used() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
