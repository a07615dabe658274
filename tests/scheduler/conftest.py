"""A home on a real SQLite store with one project; and, for the tests of the whole, a site of real processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.store.records import Project
from shared.store.sqlite import SqliteStore
from tests.cluster.conftest import api, place, wire
from tests.support.sqlite import opened
from tests.support.valkey import names, redis, valkey

__all__ = ["api", "names", "place", "redis", "valkey", "wire"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open store with the project `shop`."""
    async with opened(tmp_path) as made:
        await made.insert(Project(slug="shop", name="Shop", max_concurrent_agents=8))
        yield made
