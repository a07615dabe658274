"""A bench for each test: a real Store, a home with real repositories, all tools behind the real handler."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.guard.sandbox.sandbox import Sandbox
from shared.store.sqlite import SqliteStore
from tests.support.sqlite import store
from tests.tools.bench import Bench

__all__ = ["store"]


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """The sandbox that this machine has; where it has none, commands run as they are."""
    found = Sandbox.probe()
    return found if found.confines else Sandbox.probe("none")


@pytest.fixture
def bench(store: SqliteStore, tmp_path: Path, sandbox: Sandbox) -> Bench:
    """Nothing is registered yet."""
    return Bench(store, tmp_path / "home", sandbox)
