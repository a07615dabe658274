"""A real server that can be killed and brought back, and clients on it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from shared import secret
from shared.bus.embedded import Embedded
from shared.client import Client
from shared.client.local import supervision
from shared.settings import Settings
from tests.house.tree import variables


class Server:
    """Valkey with an append-only file; `kill` is kill -9."""

    def __init__(self, home: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.home = home
        self._embedded: Embedded | None = None

    @property
    def url(self) -> str:
        password = secret.kept(self.home / "redis" / "password")
        return f"redis://promptdock:{password}@127.0.0.1:{self.port}"

    def start(self) -> None:
        self._embedded = Embedded(self.home, self.port)
        self._embedded.start()

    def kill(self) -> None:
        pid = supervision.redis_pid(self.home)
        if self._embedded is not None and pid is not None:
            os.kill(pid, signal.SIGKILL)
            self._embedded.stop()
        self._embedded = None


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of ours, and no .env but the test's own."""
    for name in variables():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "server")
    made.start()
    yield made
    made.kill()


@pytest.fixture
def settings(server: Server, tmp_path: Path) -> Settings:
    return Settings(REDIS_URL=server.url, PROMPTDOCK_HOME=tmp_path / "home", PROMPTDOCK_LEASE=1000)


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[Client]:
    async with Client(settings) as made:
        yield made


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)
