"""The real bus and a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.store.sqlite import SqliteStore
from tests.support.valkey import names, redis, valkey

__all__ = ["names", "redis", "valkey"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "store.db")
    await made.open()
    yield made
    await made.close()
