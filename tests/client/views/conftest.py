"""A Store of a project `shop`, and somebody who reads it while no cluster runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.client import Client
from shared.settings import Settings
from shared.store.factory import store_file
from shared.store.records import Project
from shared.store.sqlite import SqliteStore


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Client]:
    settings = Settings(PROMPTDOCK_HOME=tmp_path / "read")
    settings.home.mkdir()
    made = SqliteStore(store_file(settings))
    await made.open()
    await made.upsert([Project(slug="shop", name="Shop")])
    await made.close()
    async with Client(settings) as client:
        yield client
