"""The bus in both implementations."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shared.bus.base import Bus
from shared.bus.redis import RedisBus
from tests.bus.fake import FakeBus
from tests.support.valkey import names, redis, valkey

__all__ = ["bus", "names", "redis", "valkey"]


@pytest.fixture(params=["fake", "real"])
async def bus(request: pytest.FixtureRequest, valkey: str) -> AsyncIterator[Bus]:
    """Each test runs on both."""
    made: Bus = FakeBus() if request.param == "fake" else RedisBus(valkey, silence=5.0)
    yield made
    await made.close()
