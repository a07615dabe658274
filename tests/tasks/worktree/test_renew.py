"""A branch that clashes with the default branch: merged into the worktree, the conflicts marked in its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.guard.git.merging import Merger
from shared.store.records import Repo
from shared.tasks.worktree import receipt, renew
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.mirrors import Mirrors
from tests.tasks.conftest import commit, plain


async def clashing(repos: Mirrors, repo: Repo, repository: Path) -> Worktree:
    """A worktree whose branch and the default branch changed, removed and added the same files."""
    for name in ("gone.txt", "lost.txt"):
        commit(repository, name, "old\n")
    tree = await Worktree.acquire(repos, repo, "t", 1)
    (tree.path / "a.txt").write_text("one\nmine\n")
    (tree.path / "gone.txt").write_text("mine\n")
    (tree.path / "lost.txt").unlink()
    (tree.path / "blob").write_bytes(b"\0mine")
    (tree.path / "own.txt").write_text("own\n")
    await tree.git.commit_all("Mine", "s1")
    commit(repository, "a.txt", "one\ntheirs\n")
    commit(repository, "lost.txt", "theirs\n")
    commit(repository, "blob", "\0theirs")
    plain(repository, "rm", "-q", "gone.txt")
    plain(repository, "commit", "-q", "-m", "Remove")
    return tree


async def test_the_conflicts_stand_in_the_files_and_the_next_commit_is_the_merge(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    tree = await clashing(repos, repo, repository)
    merge = await renew.begin(tree, repos, repo, "backend")
    assert merge is not None and merge.commit == plain(repository, "rev-parse", "trunk")
    assert merge.marked(tree.path) == ["a.txt"]
    told = merge.told(tree.path)
    for line in (
        "- a.txt: both changed it\n",
        "- gone.txt: you changed it, trunk removed it: it is there as you made it",
        "- lost.txt: you removed it, trunk changed it: it is there as trunk has it",
        "- blob: both added it; it has no marks, and is as on your branch",
    ):
        assert line in told + "\n"
    text = (tree.path / "a.txt").read_text()
    assert "<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> " in text
    # A worker that takes it over finds the same merge.
    again = await renew.begin(tree, repos, repo, "backend")
    assert again == merge
    (tree.path / "a.txt").write_text("one\nmine\ntheirs\n")
    (tree.path / "gone.txt").unlink()
    assert merge.marked(tree.path) == []
    made = await tree.git.commit_all("Both", "s2")
    assert made and len(plain(tree.path, "rev-list", "--parents", "-1", made).split()) == 3
    assert await renew.begin(tree, repos, repo, "backend") is None
    written = await receipt.build(tree.git, tree.branch, merge.commit)
    assert written.files_changed == ["a.txt", "blob", "own.txt"]
    git = await repos.source(repo)
    trial = await Merger(git.path, git.sandbox, git.lock, git.where).trial("trunk", tree.branch)
    assert trial.clashes == []
    await tree.remove()


async def test_a_merge_of_which_our_side_was_kept_is_a_merge_all_the_same(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    tree = await Worktree.acquire(repos, repo, "t", 1)
    (tree.path / "a.txt").write_text("mine\n")
    await tree.git.commit_all("Mine", "s1")
    commit(repository, "a.txt", "theirs\n")
    assert await renew.begin(tree, repos, repo, "backend") is not None
    (tree.path / "a.txt").write_text("mine\n")
    assert await tree.git.commit_all("Mine, still", "s2")
    assert await renew.begin(tree, repos, repo, "backend") is None
    await tree.remove()


async def test_what_nobody_resolved_is_undone_and_the_branch_is_what_it_was(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    tree = await clashing(repos, repo, repository)
    head = await tree.git.head()
    assert await renew.begin(tree, repos, repo, "backend") is not None
    assert await renew.give_up(tree)
    assert await tree.git.head() == head and await tree.git.status() == []
    assert (tree.path / "a.txt").read_text() == "one\nmine\n"
    assert not await renew.give_up(tree)
    await tree.remove()


async def test_a_branch_that_agrees_is_left_alone_and_one_with_changes_is_not_merged_into(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    tree = await Worktree.acquire(repos, repo, "t", 1)
    (tree.path / "b.txt").write_text("b\n")
    await tree.git.commit_all("Mine", "s1")
    commit(repository, "c.txt", "c\n")
    assert await renew.begin(tree, repos, repo, "backend") is None
    assert not (tree.path / "c.txt").exists()
    commit(repository, "b.txt", "theirs\n")
    (tree.path / "b.txt").write_text("not committed\n")
    with pytest.raises(ToolError, match="not committed"):
        await renew.begin(tree, repos, repo, "backend")
    assert (tree.path / "b.txt").read_text() == "not committed\n"
    await tree.remove(force=True)
