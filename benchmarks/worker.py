"""An idle worker: how long it takes to be ready, and how much memory it holds before its first model call."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import psutil

from benchmarks.server import Child, process, server

_MB = 1024 * 1024


def measure(home: Path, rounds: int) -> None:
    """Print both, worker after worker in a home of its own."""
    print(f"\nAn idle worker (chatter, no key), median of {rounds}:")
    home = home / "worker"
    home.mkdir()
    with server(home / "server", "everysec") as url:
        seen = zip(*(_one(home, url) for _ in range(rounds)), strict=True)
        took, used, held = (statistics.median(figures) for figures in seen)
    print(f"  ready after {took:.2f} s, of which its own processor time {used:.2f} s")
    print(f"  resident memory {held:.1f} MB")


def _one(home: Path, url: str) -> tuple[float, float, float]:
    """Seconds from its start to its ready line, seconds of processor, and megabytes a moment later."""
    started = time.monotonic()
    with process("-m", "agents.chatter", home=home, REDIS_URL=url, PROMPTDOCK_HOME=str(home)) as child:
        child.wait_for(" ready")
        took, used = time.monotonic() - started, psutil.Process(child.pid).cpu_times()
        return took, used.user + used.system, _settled(child)


def _settled(child: Child) -> float:
    """Its memory once it no longer grows: the first heartbeat and the first drain are over by then."""
    seen = psutil.Process(child.pid)
    last, ends = 0, time.monotonic() + 5
    while (now := seen.memory_info().rss) > last and time.monotonic() < ends:
        last = now
        time.sleep(0.3)
    return max(now, last) / _MB
