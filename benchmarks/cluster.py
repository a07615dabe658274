"""The whole cluster from the command line: how long `up` takes to be ready, and `status` to answer."""

from __future__ import annotations

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
    print(f"  promptdock up      ready after {statistics.median(ups):.2f} s")
    print(f"  promptdock status  {statistics.median(looks):.2f} s")


def _timed(home: Path, *words: str) -> float:
    """Seconds that a command takes, from its start to its end."""
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "gateways.cli", *words],
        cwd=home,
        env=environment(PROMPTDOCK_HOME=str(home / ".promptdock")),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    return time.monotonic() - started
