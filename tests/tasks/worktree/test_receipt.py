"""The receipt: what git and the commands say, whatever the model claims."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from shared.store.records import Repo, Verified
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.mirrors import Mirrors
from shared.tasks.worktree.receipt import CheckRun, Receipt, build, digest, verdict


def check(command: str, exit_code: int, at: float = 10.0) -> CheckRun:
    return CheckRun(command=command, exit_code=exit_code, check=True, at=at)


@pytest.mark.parametrize(
    ("commands", "committed", "expected"),
    [
        ([], True, "unverified"),
        ([CheckRun(command="ls", exit_code=0, at=10)], True, "unverified"),
        ([check("pytest", 0)], True, "verified"),
        ([check("pytest", 0)], False, "unverified"),
        ([check("pytest", 1)], True, "unverified"),
        ([check("pytest", 1), check("pytest", 0)], True, "verified"),
        ([check("pytest", 0), check("pytest", 1)], True, "unverified"),
        ([check("pytest", 0), check("ruff", 1)], True, "partly"),
        ([check("pytest", 0, at=4)], True, "unverified"),
    ],
)
def test_work_counts_as_verified_only_by_checks_that_passed_after_the_last_change(
    commands: list[CheckRun], committed: bool, expected: Verified
) -> None:
    assert verdict(commands, committed, changed=5.0) == expected


async def test_it_is_built_from_git_and_from_commands(repos: Mirrors, repo: Repo) -> None:
    tree = await Worktree.acquire(repos, repo, "t", 1)
    (tree.path / "b.txt").write_text("b\n")
    first = await tree.git.commit_all("Add b", "t:1")
    (tree.path / "a.txt").write_text("two\n")
    second = await tree.git.commit_all("Change a", "t:2")
    (tree.path / "late.txt").write_text("never committed")
    ran = {"command": "pytest", "exit_code": 0, "stdout_digest": digest("ok"), "ms": 5, "check": True}
    made = await build(tree.git, tree.branch, tree.base, [{**ran, "at": time.time() + 1}], "All is well", 12)
    assert [(commit.sha, commit.subject) for commit in made.commits] == [
        (first, "Add b"),
        (second, "Change a"),
    ]
    assert made.files_changed == ["a.txt", "b.txt"] and "2 files changed" in made.diff_stat
    assert (made.branch, made.base, made.tokens, made.verified) == ("promptdock/t", tree.base, 12, "verified")
    assert Receipt.model_validate_json(made.model_dump_json()) == made
    os.utime(tree.path / "a.txt", (time.time() + 5,) * 2)
    late = await build(tree.git, tree.branch, tree.base, [{**ran, "at": time.time() + 1}])
    assert late.verified == "unverified"


async def test_nothing_done_is_an_empty_receipt_whatever_was_said(repos: Mirrors, repo: Repo) -> None:
    tree = await Worktree.acquire(repos, repo, "t", 1)
    made = await build(tree.git, tree.branch, tree.base, [check("pytest", 0)], "I changed everything")
    assert made.commits == [] and made.files_changed == [] and made.diff_stat == ""
    assert made.verified == "unverified"


async def test_it_is_bounded(repos: Mirrors, repo: Repo, tmp_path: Path) -> None:
    tree = await Worktree.acquire(repos, repo, "t", 1)
    for number in range(600):
        (tree.path / f"f{number}").write_text("x")
    await tree.git.commit_all("Many", "t:1")
    made = await build(tree.git, tree.branch, tree.base, [check(f"c{n}", 0) for n in range(300)])
    assert len(made.files_changed) == 500 and len(made.commands) == 200
