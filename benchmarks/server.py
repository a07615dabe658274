"""A server of its own for each way of writing to disk, and the worker processes beside it."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from shared.bus.embedded import Embedded
from shared.errors import BusUnreachable

ROOT = Path(__file__).resolve().parents[1]
Sync = Literal["everysec", "always", "off"]  # off: no append-only file at all
_numbers = itertools.count(1)


def environment(**more: str) -> dict[str, str]:
    """What a child process of the bench is started with: nothing of ours is taken from outside."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **more}


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def server(home: Path, sync: Sync) -> Iterator[str]:
    """An embedded server with its own data; its URL."""
    embedded = Embedded(home, free_port())
    try:
        url = embedded.start()
        with socket.create_connection(("127.0.0.1", embedded.port), 5) as line:
            setting = "appendonly no" if sync == "off" else f"appendfsync {sync}"
            place = urlsplit(url)
            line.sendall(f"AUTH {place.username} {place.password}\r\nCONFIG SET {setting}\r\n".encode())
            if line.makefile("rb").read(10) != b"+OK\r\n+OK\r\n":
                raise BusUnreachable("the server did not take a setting", setting)
        yield url
    finally:
        embedded.stop()


@dataclass(frozen=True)
class Child:
    """A process of ours, and the file that it logs to."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    def wait_for(self, word: str, patience: float = 30.0) -> None:
        """Until its log holds `word`; if it ends or is late, an error with what it said."""
        ends = time.monotonic() + patience
        while word not in (said := self.log.read_text("utf-8", "replace")):
            if self.process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"{self.process.args!r} did not say {word!r}: {said[-2000:]}")
            time.sleep(0.002)


@contextlib.contextmanager
def process(
    *arguments: str, home: Path, python: str | Path = sys.executable, **variables: str
) -> Iterator[Child]:
    """A Python process of ours, ended with the block."""
    log = home / f"{next(_numbers)}.log"
    with log.open("wb") as out:
        child = subprocess.Popen(
            [python, *arguments],
            cwd=home,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=out,
        )
    try:
        yield Child(child, log)
    finally:
        child.terminate()
        try:
            child.wait(25)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(5)
