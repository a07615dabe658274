"""Worktrees of tasks that ended while their worker was dead are found, kept on their branch, and removed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.guard.files.git_folder import Layout
from shared.guard.git import worktrees
from shared.store.records import Project, Repo, Task
from shared.store.sqlite import SqliteStore
from shared.tasks.worktree import orphans
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.mirrors import Mirrors
from tests.support.sqlite import opened
from tests.tasks.conftest import PROJECT, plain


@pytest.fixture
async def store(tmp_path: Path, repo: Repo) -> AsyncIterator[SqliteStore]:
    async with opened(tmp_path) as made:
        await made.upsert([Project(id=PROJECT, slug="p", name="P"), repo])
        yield made


async def left(repos: Mirrors, repo: Repo, store: SqliteStore, name: str, status: str) -> Worktree:
    """A worktree as a worker leaves it that was killed in the middle of its work."""
    tree = await Worktree.acquire(repos, repo, name, 7)
    (tree.path / "half.txt").write_text("half\n")
    record = tree.path.parent / f"{name}.json"
    kept = json.loads(record.read_text())
    kept["owner"] = {"group": 1, "birth": "gone"}
    record.write_text(json.dumps(kept))
    task = Task(slug=name, project_id=PROJECT, title=name, repo_id=repo.id, epoch=7)
    await store.upsert([task.model_copy(update={"status": status})])
    return tree


def layout_of(tree: Worktree) -> Layout:
    assert tree.source.where is not None
    return tree.source.where


async def test_only_those_of_tasks_that_have_ended_go_and_no_work_is_lost(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    ended = await left(repos, repo, store, "ended", "BLOCKED")
    running = await left(repos, repo, store, "running", "IN_PROGRESS")
    alive = await Worktree.acquire(repos, repo, "alive", 1)
    assert await orphans.sweep(repos, store) == ["ended"]
    assert not ended.path.exists() and running.path.exists() and alive.path.exists()
    assert plain(repository, "show", f"{ended.branch}:half.txt") == "half"
    assert await orphans.sweep(repos, store) == []


async def test_files_of_a_worktree_that_was_being_removed_are_gone_at_the_next_sweep(
    repos: Mirrors, repo: Repo, store: SqliteStore
) -> None:
    tree = await Worktree.acquire(repos, repo, "cut", 1)
    aside = worktrees.part(tree.path, layout_of(tree))
    assert (aside / "a.txt").exists()  # its worker was killed here
    assert await orphans.sweep(repos, store) == [] and not aside.exists()
    again = await Worktree.acquire(repos, repo, "cut", 2)
    assert (again.path / "a.txt").exists()


async def test_a_worktree_whose_entry_was_left_behind_is_made_anew(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    tree = await Worktree.acquire(repos, repo, "cut", 1)
    tree.path.rename(
        tree.path.with_name(f".cut.0{worktrees.GONE}")
    )  # and no more: then its worker was killed
    again = await Worktree.acquire(repos, repo, "cut", 2)
    assert again.branch == tree.branch and await again.git.status() == []
    await again.remove()
    assert plain(repository, "worktree", "list").count("\n") == 0
