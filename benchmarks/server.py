"""A server of its own for each way of writing to disk, and the worker processes beside it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from shared.bus.embedded import Embedded
from shared.errors import BusUnreachable

ROOT = Path(__file__).resolve().parents[1]
Sync = Literal["everysec", "always"]


def environment(**more: str) -> dict[str, str]:
    """What a child process of the bench is started with: nothing of ours is taken from outside."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **more}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def server(home: Path, sync: Sync) -> Iterator[str]:
    """An embedded server with its own data; its URL."""
    embedded = Embedded(home, _free_port())
    try:
        url = embedded.start()
        with socket.create_connection(("127.0.0.1", embedded.port), 5) as line:
            line.sendall(f"CONFIG SET appendfsync {sync}\r\n".encode())
            if line.recv(64) != b"+OK\r\n":
                raise BusUnreachable("the server took no appendfsync", sync)
        yield url
    finally:
        embedded.stop()


@contextlib.contextmanager
def process(*arguments: str, home: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process of ours whose stderr can be read; ended with the block."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=home,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.communicate(timeout=25)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate(timeout=5)


def wait_for(child: subprocess.Popen[bytes], word: bytes) -> list[bytes]:
    """The child's lines up to one that holds `word`; if it ends before, an error with what it said."""
    assert child.stderr is not None
    said = []
    for line in child.stderr:
        said.append(line)
        if word in line:
            return said
    raise RuntimeError(f"a process of the bench ended early: {b''.join(said[-5:]).decode(errors='replace')}")
