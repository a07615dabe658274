"""A real server for tests: the embedded Valkey on a free port, and a namespace of its own for each test."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from shared.bus import embedded
from shared.bus.embedded import Embedded
from shared.bus.keys import Names
from shared.bus.redis import RedisBus

_numbers = itertools.count(1)


def free_port() -> int:
    """A port that nobody has, and that no outgoing connection gets."""
    return embedded.free_port(0)


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for a condition, with a bound."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        await asyncio.sleep(0.005)


async def eventually(condition: Callable[[], Awaitable[object]], seconds: float = 30.0) -> None:
    """Wait for what must be asked, with a bound."""
    ends = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < ends, "it did not happen in time"
        await asyncio.sleep(0.01)


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that runs as long as the tests do."""
    server = Embedded(tmp_path_factory.mktemp("valkey"), free_port())
    yield server.start()
    server.stop()


@pytest.fixture
def names() -> Names:
    """A namespace that nothing else uses."""
    return Names(f"t{next(_numbers)}")


@pytest.fixture
async def redis(valkey: str) -> AsyncIterator[RedisBus]:
    """The real bus on the real server."""
    bus = RedisBus(valkey, silence=5.0, client_name="promptdock-test")
    yield bus
    await bus.close()
