"""One contender in the race: a worker process that answers, a client process that asks."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.race import Lap
from benchmarks.server import Child, environment, free_port, process

_MB = 1024 * 1024


@dataclass
class Contender:
    """Both processes, ready to be asked."""

    asker: subprocess.Popen[str]
    worker: Child
    start_up: float  # seconds from the start of the worker to its first answer

    def lap(self, in_flight: int, seconds: float) -> Lap:
        """Let it run so many side by side for a moment."""
        return Lap(**json.loads(_told(self.asker, f"{in_flight} {seconds}")))

    def memory(self) -> float:
        """Megabytes of the worker and its children, what they share counted once."""
        root = psutil.Process(self.worker.pid)
        return sum(_own(each) for each in (root, *root.children(recursive=True))) / _MB


def _own(process: psutil.Process) -> int:
    facts = process.memory_full_info()
    return int(getattr(facts, "pss", facts.uss))


def _told(asker: subprocess.Popen[str], order: str = "") -> str:
    assert asker.stdin is not None and asker.stdout is not None
    if order:
        asker.stdin.write(f"{order}\n")
        asker.stdin.flush()
    line = asker.stdout.readline()
    if not line:
        raise RuntimeError(f"{asker.args!r} ended with {asker.wait(5)}; what it said is above")
    return line


@contextlib.contextmanager
def contender(side: str, url: str, python: Path, home: Path) -> Iterator[Contender]:
    """Start the processes of a side, and time the worker until its first answer."""
    part, hub = "benchmarks.peers.part", str(free_port())
    with contextlib.ExitStack() as stack:
        if side.endswith(".autogen"):
            host = process("-m", part, "hub", side, url, home=home, python=python, BENCH_HUB=hub)
            stack.enter_context(host)
            _listening(int(hub))
        asker = stack.enter_context(_asker(side, url, python, home, hub))
        _told(asker)
        started = time.monotonic()
        worker = process("-m", part, "serve", side, url, home=home, python=python, BENCH_HUB=hub)
        child = stack.enter_context(worker)
        _told(asker, "first")
        yield Contender(asker, child, time.monotonic() - started)


@contextlib.contextmanager
def _asker(side: str, url: str, python: Path, home: Path, hub: str) -> Iterator[subprocess.Popen[str]]:
    asker = subprocess.Popen(
        [python, "-m", "benchmarks.peers.part", "ask", side, url],
        cwd=home,
        env=environment(BENCH_HUB=hub),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with asker:
        try:
            yield asker
        finally:
            if asker.stdin is not None:
                asker.stdin.close()
            try:
                asker.wait(5)
            except subprocess.TimeoutExpired:
                asker.kill()


def _listening(port: int, patience: float = 30.0) -> None:
    ends = time.monotonic() + patience
    while time.monotonic() < ends:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"nobody listens on {port} after {patience:.0f} s: {sys.executable}")
