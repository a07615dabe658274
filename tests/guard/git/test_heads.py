"""Where branches stand is read without git, and is what git says; what only git can tell is left to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.guard.files.git_folder import Layout, layout
from shared.guard.git import heads as githeads
from shared.guard.git.commands import Git
from shared.guard.sandbox.sandbox import Sandbox
from tests.tasks.conftest import begun, commit, plain

OPEN = Sandbox("none", "as if there were no sandbox")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Branches as files, packed, and packed but changed since; a remote; a worktree."""
    folder = begun(tmp_path / "shop", "main")
    plain(folder, "branch", "deep/packed")
    plain(folder, "update-ref", "refs/remotes/origin/main", "main")
    plain(folder, "pack-refs", "--all")
    commit(folder, "a.txt", "two\n")
    plain(folder, "branch", "deep/loose")
    plain(folder, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    plain(folder, "worktree", "add", "-q", "-b", "tree", str(tmp_path / "tree"), "HEAD~1")
    return folder


def there(folder: Path) -> Layout:
    found = layout(folder)
    assert found is not None
    return found


NAMES = (
    "HEAD", "MERGE_HEAD", "refs/heads/main", "refs/heads/deep/packed", "refs/heads/deep/loose", "refs/heads/deep",
    "refs/heads/tree", "refs/heads/none", "refs/heads/main/below", "refs/remotes/origin/main",
    "refs/remotes/origin/HEAD",
)  # fmt: skip


def asked(folder: Path, name: str) -> str:
    """What git says of it."""
    listed = plain(folder, "rev-parse", "--revs-only", "--end-of-options", name)
    return listed if len(listed) == 40 else ""


@pytest.mark.parametrize("state", ["as it is", "all packed", "detached", "merging"])
def test_what_is_read_is_what_git_says_in_a_checkout_and_in_a_worktree(
    repository: Path, tmp_path: Path, state: str
) -> None:
    prepare: dict[str, Callable[[], object]] = {
        "as it is": lambda: None,
        "all packed": lambda: plain(repository, "pack-refs", "--all", "--prune"),
        "detached": lambda: plain(repository, "checkout", "-q", "--detach", "HEAD~1"),
        "merging": lambda: plain(tmp_path / "tree", "merge", "-q", "--no-ff", "--no-commit", "main"),
    }
    prepare[state]()
    for folder in (repository, tmp_path / "tree"):
        told = {name: githeads.commit(there(folder), name) for name in NAMES}
        assert told == {name: asked(folder, name) for name in NAMES}
    assert bool(githeads.commit(there(tmp_path / "tree"), "MERGE_HEAD")) == (state == "merging")


@pytest.mark.parametrize(
    "name",
    ["main", "v1", "refs/tags/v1", "refs/heads/main~1", "refs/heads/main^", "refs/heads/../../config",
     "refs/heads/../heads/main", "config", "refs/heads/", "HEAD~1", "refs/heads/a\0b", "FETCH_HEAD"],
)  # fmt: skip
def test_what_is_no_plain_full_name_is_left_to_git(repository: Path, name: str) -> None:
    plain(repository, "tag", "-a", "-m", "first", "v1")
    assert not githeads.commit(there(repository), name)
    assert githeads.commit(there(repository), name) is None or name == "refs/heads/"


def test_what_git_did_not_write_is_left_to_git(repository: Path, tmp_path: Path) -> None:
    heads = repository / ".git" / "refs" / "heads"
    for name, text in (("empty", ""), ("cut", "1234"), ("word", "hello\n"), ("away", "ref: ../../x\n")):
        (heads / name).write_text(text)
    (heads / "round").write_text("ref: refs/heads/round\n")
    (heads / "link").symlink_to(heads / "main")
    for name in ("empty", "cut", "word", "away", "round", "link"):
        assert githeads.commit(there(repository), f"refs/heads/{name}") is None, name


def test_of_a_repository_that_keeps_its_branches_otherwise_git_is_asked(repository: Path) -> None:
    (repository / ".git" / "reftable").mkdir()
    assert githeads.commit(there(repository), "refs/heads/main") is None


def test_where_head_leads_is_read_too(repository: Path, tmp_path: Path) -> None:
    assert githeads.target(there(repository), "HEAD") == "refs/heads/main"
    assert githeads.target(there(tmp_path / "tree"), "HEAD") == "refs/heads/tree"
    assert githeads.target(there(repository), "refs/remotes/origin/HEAD") == "refs/remotes/origin/main"
    plain(repository, "checkout", "-q", "--detach")
    assert githeads.target(there(repository), "HEAD") == ""


async def test_no_process_is_started_to_ask_for_a_branch_and_one_is_for_a_tag(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = Git(repository, OPEN)
    tip = await git.head()  # after this, its configuration is known
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert await git.commit_of("refs/heads/main") == tip and await Git(repository, OPEN).head() == tip
    assert (await git.branch(), await git.merging(), await git.default_branch()) == ("main", "", "main")
    with pytest.raises(ToolError, match="could not be started"):
        await git.commit_of("v1")


async def test_a_repository_that_is_not_trusted_is_not_read_either(repository: Path) -> None:
    plain(repository, "config", "filter.x.clean", "touch CANARY")
    with pytest.raises(ToolError, match="not trusted"):
        await Git(repository, OPEN).head()
