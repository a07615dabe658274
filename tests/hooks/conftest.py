"""A store with a project, hooks made in a line; and, for the tests of the whole, a site of real processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from shared.store.records import Hook, Project, project_key
from shared.store.sqlite import SqliteStore
from tests.cluster.conftest import api, place, wire
from tests.support.sqlite import opened
from tests.support.valkey import names, redis, valkey

__all__ = ["api", "names", "place", "redis", "valkey", "wire"]

Make = Callable[..., Awaitable[Hook]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open store with the project `shop`."""
    async with opened(tmp_path) as made:
        await made.insert(Project(slug="shop", name="Shop"))
        yield made


@pytest.fixture
def make(store: SqliteStore) -> Make:
    """Write a hook of the project."""

    async def make(slug: str = "watch", **more: Any) -> Hook:
        given: dict[str, Any] = {
            "trigger": {"type": "periodic", "interval_seconds": 60},
            "cooldown_seconds": 0,
        }
        row = Hook(
            slug=slug, name=slug, project_id=project_key("shop"), prompt_template="Look.", **(given | more)
        )
        await store.insert(row)
        return row

    return make
