"""The ground that hostile input stands on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shared.guard.permissions.presets import preset
from shared.guard.sandbox.sandbox import Sandbox
from shared.store.sqlite import SqliteStore
from tests.attacks.ground import CANARY, Ground, prepare
from tests.cluster.conftest import api, place, wire
from tests.support.sqlite import store
from tests.support.valkey import names, redis, valkey
from tests.tools.bench import Bench

__all__ = ["api", "names", "place", "redis", "store", "valkey", "wire"]


@pytest.fixture(scope="session")
def strongest() -> Sandbox:
    """The best sandbox of this machine."""
    found = Sandbox.probe()
    assert found.confines, found.why
    return found


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file that nobody may read or change, beside the workspace."""
    file = tmp_path / "outside.txt"
    file.write_text(CANARY)
    return file


@pytest.fixture(scope="session")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace to copy."""
    root = tmp_path_factory.mktemp("pattern") / "workspace"
    prepare(root)
    return root


@pytest.fixture
def workspace(tmp_path: Path, pattern: Path, canary: Path) -> Path:
    """A workspace with a canary beside it."""
    assert canary.exists()
    return Path(shutil.copytree(pattern, tmp_path / "workspace"))


@pytest.fixture
def builder(workspace: Path, strongest: Sandbox) -> Ground:
    """An agent that may build: the policy of those who write code."""
    return Ground(workspace, preset("builder", confined=True), strongest)


@pytest.fixture
def bench(store: SqliteStore, tmp_path: Path, strongest: Sandbox) -> Bench:
    """A conversation's tools on a real Store."""
    return Bench(store, tmp_path / "home", strongest)
