"""MCP servers and a client that others wrote, as they are published.

What comes from npm is fetched once into the user's cache; a test that needs it is skipped where it cannot be had.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import npm
from tests.support.postgres import Missing

PINNED = {"@modelcontextprotocol/sdk": "1.32.2", "@modelcontextprotocol/server-everything": "2026.8.31"}
CLIENT = Path(__file__).with_name("mcp_client.mjs")
LIMIT = 60.0  # seconds
FETCH = 90.0  # seconds that npm may take
TIME = {
    "command": sys.executable,
    "args": ["-P", "-m", "mcp_server_time", "--local-timezone", "UTC"],
}  # of PyPI


def packages() -> Path:
    """What npm has of these."""
    try:
        return npm.packages(PINNED, FETCH)
    except Missing as missing:
        pytest.skip(str(missing))


def everything(port: int) -> subprocess.Popen[bytes]:
    """The server with all that the protocol has, at this port; it listens when this returns."""
    script = packages() / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    process = subprocess.Popen(
        [*npm.node(), str(script), "streamableHttp"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ends = time.monotonic() + LIMIT
    while not _listens(port):
        if process.poll() is not None or time.monotonic() > ends:
            process.kill()
            process.wait(LIMIT)
            raise RuntimeError("the server does not begin")
        time.sleep(0.05)
    return process


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def running(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The same, ended at once when it is left."""
    process = everything(port)
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT)


def javascript(*steps: tuple[str, dict[str, Any]], **server: Any) -> dict[str, Any]:
    """What the official client for JavaScript gets from a server (`command`, `env`, `cwd`; or `url`, `headers`)."""
    command = [*npm.node(), str(CLIENT), str(packages())]
    plan = json.dumps({**server, "steps": steps})
    done = subprocess.run(command, input=plan, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode:
        raise AssertionError(f"the client ended with {done.returncode}: {done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told
