"""Several git commands in one sandbox: each has its own input, output and end, and a killed one has no answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.guard.git.batch import Batch, BatchCommand
from shared.guard.git.merging import Merger
from shared.guard.git.runner import GitRunner
from shared.guard.processes.process import Finished
from shared.guard.sandbox.sandbox import Sandbox
from tests.guard.conftest import sandbox
from tests.tasks.conftest import begun, commit, plain

OPEN = Sandbox("none", "as if there were no sandbox")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return begun(tmp_path / "it's $(a) shop", "main")


async def ran(repository: Path, around: Sandbox, *commands: BatchCommand) -> list[tuple[int, str]]:
    found = await GitRunner(repository, around)._gits(*commands)
    return [(done.exit_code, done.stdout) for done in found]


@pytest.mark.parametrize("mode", ["bwrap", "none"])
async def test_each_reads_its_own_and_its_output_comes_back_byte_for_byte(
    repository: Path, mode: str
) -> None:
    around = OPEN if mode == "none" else sandbox(mode)
    texts = [b"$(touch CANARY)\n'\"\n\n", b"", b"\nno end", b"\xff\xfe\n"]
    made = [("hash-object", "-w", "--stdin") for _ in texts]
    ids = [out.strip() for _, out in await ran(
        repository, around, *(BatchCommand(words, stdin=text) for words, text in zip(made, texts, strict=True))
    )]  # fmt: skip
    shown = await ran(
        repository, around, *(BatchCommand(("cat-file", "blob", id), errors="surrogateescape") for id in ids)
    )
    assert [os.fsencode(out) for _, out in shown] == texts
    assert sorted(os.listdir(repository)) == [".git", "a.txt"]  # noqa: PTH208 - names alone


async def test_one_that_ends_otherwise_than_it_should_is_the_last(repository: Path) -> None:
    asks = BatchCommand(("rev-parse", "--verify", "--quiet", "refs/heads/none"), then=0)
    looks = BatchCommand(("diff", "--cached", "--quiet"), then=0)
    head = BatchCommand(("rev-parse", "--abbrev-ref", "HEAD"))
    assert await ran(repository, OPEN, looks, head) == [(0, ""), (0, "main\n")]
    assert await ran(repository, OPEN, looks, asks, head) == [(0, ""), (1, "")]
    free = BatchCommand(asks.arguments)
    assert await ran(repository, OPEN, free, head) == [(1, ""), (0, "main\n")]


async def test_what_each_complains_of_is_its_own(repository: Path) -> None:
    one, two = BatchCommand(("cat-file", "blob", "main:none")), BatchCommand(("branch", "-d", "other"))
    found = await GitRunner(repository, OPEN)._gits(one, two)
    assert ["none" in done.stderr for done in found] == [True, False]
    assert ["'other'" in done.stderr for done in found] == [False, True]


async def test_a_git_that_was_killed_has_answered_nothing(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = Merger(repository, OPEN)
    await git.head()
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for asking in (git.commit_of("v1"), git.contains("main", "v1"), git.commit_all("x", "s"), git.tidy()):
        with pytest.raises(ToolError, match="was ended"):
            await asking


def test_where_none_was_run_the_reason_is_that_of_the_whole() -> None:
    batch = Batch.of(["git"], [BatchCommand(("status",)), BatchCommand(("log",))])
    found, broken = batch.parted(Finished(1, "", "bwrap: no namespaces\n", False, False, 3))
    assert found == [] and broken is not None and (broken.exit_code, "bwrap" in broken.stderr) == (1, True)


async def test_a_merge_is_tried_once_and_made_as_it_was_tried(repository: Path) -> None:
    plain(repository, "checkout", "-q", "-b", "work")
    commit(repository, "b ü\n.txt", "b\n")
    plain(repository, "checkout", "-q", "main")
    commit(repository, "a.txt", "two\n")
    git = Merger(repository, OPEN)
    old, new = await git.head(), await git.commit_of("refs/heads/work")
    trial = await git.trial(old, new)
    assert (trial.clashes, trial.changed) == ([], ["b ü\n.txt"])
    assert trial.base == plain(repository, "merge-base", "main", "work")
    made = await git.join(old, new, trial.tree, "Merge it\n", "backend")
    await git.advance("main", old, made)
    assert plain(repository, "rev-parse", "main^1", "main^2").split() == [old, new]
    assert (repository / "b ü\n.txt").read_text() == "b\n" and (repository / "a.txt").read_text() == "two\n"
    again = await git.trial(made, new)
    assert (again.base, again.changed) == (new, [])
