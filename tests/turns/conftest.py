"""A queue on each bus."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.turns.queue import Queue
from tests.bus.fake import FakeBus
from tests.support.valkey import names, redis, valkey
from tests.turns.ground import Lossy

__all__ = ["bus", "lossy", "names", "queue", "redis", "valkey"]


@pytest.fixture(params=["fake", "real"])
async def bus(request: pytest.FixtureRequest, valkey: str) -> AsyncIterator[Bus]:
    """Each test runs on both."""
    made: Bus = FakeBus() if request.param == "fake" else RedisBus(valkey, silence=5.0)
    yield made
    await made.close()


@pytest.fixture
def queue(bus: Bus, names: Names) -> Queue:
    """Chatter's queue, with a lease that does not run out by itself."""
    return Queue(bus, names, "chatter", lease_ms=60_000)


@pytest.fixture
def lossy(bus: Bus, names: Names) -> Queue:
    """The same queue over a bus that loses replies."""
    return Queue(Lossy(bus), names, "chatter", lease_ms=60_000)
