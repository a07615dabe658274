"""A Store of a test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shared.store.sqlite import SqliteStore


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteStore]:
    """An open, empty one in this folder."""
    made = SqliteStore(folder / "store.db")
    await made.open()
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open, empty one."""
    async with opened(tmp_path) as made:
        yield made
