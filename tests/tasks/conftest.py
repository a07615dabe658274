"""A linked repository, a home, and the row that stands for the repository."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.guard.sandbox.sandbox import Sandbox
from shared.store.records import Repo
from shared.store.row import new_id
from shared.tasks.worktree.mirrors import Mirrors
from tests.support.valkey import names, redis, valkey

__all__ = ["names", "redis", "valkey"]
PROJECT = new_id()


def plain(folder: Path, *arguments: str) -> str:
    """git as anybody runs it, to prepare and to look."""
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    done = subprocess.run(
        ["git", *author, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    plain(folder, "add", "--", name)
    plain(folder, "commit", "-q", "-m", f"Change {name}")
    return plain(folder, "rev-parse", "HEAD")


def begun(folder: Path, branch: str) -> Path:
    """A new repository with one commit."""
    folder.mkdir()
    plain(folder, "init", "-q", "-b", branch)
    commit(folder, "a.txt", "one\n")
    return folder


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return begun(tmp_path / "Shop", "trunk")


@pytest.fixture
def repos(tmp_path: Path) -> Mirrors:
    home = tmp_path / "home"
    home.mkdir()
    return Mirrors(home, "h1", Sandbox.probe(), allow_local=True)


@pytest.fixture
async def repo(repos: Mirrors, repository: Path) -> Repo:
    return await repos.add(str(repository), PROJECT)
