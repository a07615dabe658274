"""Repositories: linked ones are read as they lie there, others from a mirror at a commit that is cited."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import Lasting, ToolError, UsageError
from shared.store.records import Repo
from shared.tasks.names import slug
from shared.tasks.worktree.mirrors import Mirrors
from tests.tasks.conftest import PROJECT, commit, plain


async def test_a_linked_repository_keeps_its_own_default_branch(repos: Mirrors, repository: Path) -> None:
    repo = await repos.add(str(repository), PROJECT, kind="backend")
    assert (repo.name, repo.path, repo.home, repo.url) == ("Shop", str(repository), "h1", None)
    assert (repo.kind, repo.default_branch) == ("backend", "trunk")
    assert (await repos.add(str(repository), PROJECT, name="shop")).name == "shop"


@pytest.mark.parametrize("place", ["nowhere", "."])
async def test_a_place_without_a_repository_is_a_usage_error(
    repos: Mirrors, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        await repos.add(place, PROJECT)


@pytest.mark.parametrize(("place", "why"), [("/", "home folder"), ("~", "home folder"), ("/etc", "system")])
async def test_a_folder_that_can_be_no_root_is_refused_as_that_also_without_a_repository(
    repos: Mirrors, place: str, why: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a repository") as refused:
        await repos.add(place, PROJECT)
    assert why in refused.value.why
    assert "git init" not in refused.value.fix


async def test_a_bare_repository_is_named_as_one_with_what_to_do(repos: Mirrors, tmp_path: Path) -> None:
    bare = tmp_path / "shop.git"
    plain(tmp_path, "init", "-q", "--bare", str(bare))
    with pytest.raises(UsageError, match="bare") as refused:
        await repos.add(str(bare), PROJECT)
    assert "git clone" in refused.value.fix


@pytest.mark.parametrize("url", ["file:///etc", "https://127.0.0.1:1/x", "ext::sh -c id", "git@localhost:x"])
async def test_a_url_that_leads_into_this_machine_is_refused(repos: Mirrors, url: str) -> None:
    with pytest.raises(ToolError):
        await replace(repos, allow_local=False).add(url, PROJECT)
    assert not (repos.home / "mirrors").exists()


async def test_readers_of_a_linked_repository_see_it_as_it_lies_there(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    (repository / "new").write_text("not committed")
    path, cited = await repos.read_root(repo)
    assert path == repository and cited == plain(repository, "rev-parse", "HEAD")
    with pytest.raises(ToolError, match="another machine"):
        await replace(repos, home_id="h2").read_root(repo)


async def mirrored(repos: Mirrors, repository: Path) -> Repo:
    return await repos.add(f"file://{repository}", PROJECT)


async def test_readers_of_a_mirror_get_the_fetched_commit_and_keep_it_under_them(
    repos: Mirrors, repository: Path
) -> None:
    repo = await mirrored(repos, repository)
    assert (repo.name, repo.default_branch, repo.path) == ("Shop", "trunk", None)
    path, first = await repos.read_root(repo)
    assert first == plain(repository, "rev-parse", "HEAD") and (path / "a.txt").read_text() == "one\n"
    second = commit(repository, "a.txt", "two\n")
    make_old(next((repos.home / "mirrors").glob("*/FETCH_HEAD")))
    newer, cited = await repos.read_root(repo)
    assert cited == second and (newer / "a.txt").read_text() == "two\n"
    assert (path / "a.txt").read_text() == "one\n"
    make_old(next((repos.home / "reading").glob(f"*/{first[:16]}.ready")))
    await repos.read_root(repo)
    assert not path.exists() and newer.exists()


def move_away(folder: Path) -> None:
    folder.rename(folder.with_name("away"))


def make_old(file: Path) -> None:
    os.utime(file, (time.time() - 86_400,) * 2)


async def test_while_the_remote_is_away_what_was_fetched_is_still_read(
    repos: Mirrors, repository: Path
) -> None:
    repo = await mirrored(repos, repository)
    _, first = await repos.read_root(repo)
    make_old(next((repos.home / "mirrors").glob("*/FETCH_HEAD")))
    move_away(repository)
    assert (await repos.read_root(repo))[1] == first


async def test_a_checkout_that_a_crash_cut_off_is_made_again(repos: Mirrors, repository: Path) -> None:
    repo = await mirrored(repos, repository)
    path, cited = await repos.read_root(repo)
    (path.parent / f"{path.name}.ready").unlink()
    (path / "a.txt").unlink()
    assert (await repos.read_root(repo)) == (path, cited) and (path / "a.txt").exists()


async def test_a_checkout_of_which_a_crash_left_no_more_than_files_is_made_again(
    repos: Mirrors, repository: Path
) -> None:
    repo = await mirrored(repos, repository)
    path, cited = await repos.read_root(repo)
    path.with_suffix(".ready").unlink()
    (path / ".git").unlink()
    (path / "a.txt").unlink()
    assert (await repos.read_root(repo)) == (path, cited) and (path / "a.txt").exists()


async def test_many_readers_at_once_make_one_mirror_and_one_checkout(
    repos: Mirrors, repository: Path
) -> None:
    repo = await mirrored(repos, repository)
    shutil.rmtree(repos.home / "mirrors")
    found = await asyncio.wait_for(asyncio.gather(*(repos.read_root(repo) for _ in range(6))), 60)
    assert len(set(found)) == 1 and (found[0][0] / "a.txt").exists()


async def test_a_repository_without_a_commit_is_refused_with_what_to_do(
    repos: Mirrors, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    plain(empty, "init", "-q", "-b", "main")
    for place in (str(empty), f"file://{empty}"):
        with pytest.raises(UsageError, match="no commit yet") as refused:
            await repos.add(place, PROJECT)
        assert "make a first one" in refused.value.fix
    assert not list((repos.home / "mirrors").glob("*.git")), "nobody has it, so nothing of it stays"
    commit(empty, "a.txt", "a\n")
    assert (await repos.add(str(empty), PROJECT)).default_branch == "main"


async def test_one_that_lost_its_commits_fails_for_good(repos: Mirrors, repository: Path) -> None:
    repo = await repos.add(str(repository), PROJECT)
    plain(repository, "update-ref", "-d", "HEAD")
    with pytest.raises(Lasting, match="has no commit") as refused:
        await repos.base(repo)
    assert str(repository) in refused.value.fix


def test_names_of_folders_are_plain_and_different_for_different_things() -> None:
    assert slug("add-login-3") == "add-login-3"
    names = [
        slug(text)
        for text in ("Add login", "add login", "../x", "x", "", "ÄÖ", "a" * 200, "a" * 201, "\ud800")
    ]
    assert len(set(names)) == len(names)
    assert all(name and not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)
