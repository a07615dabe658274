"""The git tools that change something, on a person's repository with a real remote."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.store.records import Task, project_key
from shared.tools.git import pulls
from tests.tools.bench import Bench
from tests.tools.ground import commit, git, write


async def test_a_commit_takes_all_changes_once_even_when_the_call_is_repeated(bench: Bench) -> None:
    path = await bench.linked()
    assert (await bench.ok("git_commit", message="nothing"))["committed"] is False
    write(path, {"app.py": "three\n", "new.py": "x\n"})
    made = await bench.twice("git_commit", message="Change things; $(rm -rf /)", workspace="shop")
    assert (made["committed"], made["branch"]) == (True, "main")
    assert git(path, "rev-list", "--count", "HEAD") == "2"
    assert git(path, "log", "-1", "--format=%s%n%an") == "Change things; $(rm -rf /)\nPromptDock chatter"
    assert git(path, "status", "--porcelain") == ""
    write(path, {"app.py": "four\n"})
    assert (await bench.ok("commit_changes", message="More"))["status"] == "committed"
    assert (await bench.ok("commit_changes", message="More"))["status"] == "nothing_to_commit"


async def test_a_branch_is_made_switched_to_pushed_and_merged(bench: Bench) -> None:
    path = await bench.linked()
    assert (await bench.twice("git_create_branch", branch_name="feature"))["created_branch"] == "feature"
    write(path, {"app.py": "three\n"})
    await bench.ok("git_commit", message="Three")
    assert (await bench.twice("git_push"))["pushed"] == "feature"
    assert git(path, "rev-parse", "feature") == git(path, "rev-parse", "origin/feature")
    told = await bench.ok("git_merge", branch_name="feature", repo_id="shop")
    assert (told["merged"], told["into"], told["branch"]) == (True, "main", "feature")
    assert git(path, "branch", "--show-current") == "main"
    assert (path / "app.py").read_text() == "three\n"
    assert (await bench.ok("checkout_branch", branch_name="feature"))["status"] == "checked_out"
    assert "already" in await bench.no("create_branch", branch_name="main")


async def test_a_merge_with_conflicts_is_taken_back_whole(bench: Bench) -> None:
    path = await bench.linked()
    git(path, "switch", "--quiet", "-c", "feature")
    write(path, {"app.py": "theirs\n"})
    commit(path, "theirs")
    git(path, "switch", "--quiet", "main")
    write(path, {"app.py": "ours\n"})
    commit(path, "ours")
    git(path, "switch", "--quiet", "feature")
    told = await bench.ok("git_merge", branch_name="feature")
    assert (told["merged"], told["into"], told["conflicts"]) == (False, "main", ["app.py"])
    assert (git(path, "branch", "--show-current"), git(path, "status", "--porcelain")) == ("feature", "")
    assert (await bench.ok("merge_branch", branch_name="feature"))["status"] == "conflict"
    assert "itself" in await bench.no("git_merge", branch_name="main")


async def test_a_pull_brings_what_others_pushed_and_never_loses_changes(bench: Bench) -> None:
    path = await bench.linked()
    other = bench.home.parent / "other"
    git(path, "clone", "--quiet", git(path, "remote", "get-url", "origin"), str(other))
    write(other, {"app.py": "from another\n"})
    commit(other, "another")
    git(other, "push", "--quiet")
    write(path, {"app.py": "not committed\n"})
    assert "not committed" in await bench.no("git_pull")
    git(path, "checkout", "--quiet", "app.py")
    assert (await bench.twice("git_pull", branch="main"))["pulled"] == "main"
    assert (path / "app.py").read_text() == "from another\n"
    write(other, {"app.py": "theirs again\n"})
    commit(other, "again")
    git(other, "push", "--quiet")
    write(path, {"app.py": "ours\n"})
    commit(path, "ours")
    assert (await bench.ok("git_pull"))["conflicts"] == ["app.py"]
    assert (path / "app.py").read_text() == "ours\n"
    assert "push" in await bench.no("git_push"), "the remote is ahead, and nothing is forced"


async def test_the_reading_tools_find_the_repository_of_the_active_or_named_project(bench: Bench) -> None:
    path = await bench.linked()
    await bench.ok("create_project", name="Second Shop")
    assert (await bench.ok("git_log"))["log"][0]["subject"] == "the first commit"
    assert "no repository" in await bench.no("git_log", project_id="second-shop")
    write(path, {"app.py": "changed\n"})
    [told] = (await bench.ok("get_git_status", project_id="default"))["repos"]
    assert (told["repo_id"], told["status"]) == ("shop", " M app.py")
    assert "+changed" in (await bench.ok("git_diff", workspace="shop"))["diff"]
    assert (await bench.ok("git_changed_files", repo_id="shop", base_branch="HEAD"))["count"] == 1
    second = bench.repository("web", {"page.ts": "x\n"})
    await bench.ok("add_repo", source="link", path=str(second))
    names = [repo["repo_id"] for repo in (await bench.ok("get_git_status"))["repos"]]
    assert names == ["shop", "web"]
    assert "shop, web" in await bench.no("git_commit", message="which one?")


async def test_what_is_no_branch_is_refused_by_every_tool_that_takes_one(bench: Bench) -> None:
    path = await bench.linked()
    heads = git(path, "for-each-ref")
    for name in ("--force", "a..b", "HEAD", "@{-1}"):
        for tool in ("git_create_branch", "git_merge", "checkout_branch", "create_branch", "merge_branch"):
            await bench.no(tool, branch_name=name)
        for tool in ("git_pull", "git_push"):
            await bench.no(tool, branch=name)
    assert git(path, "for-each-ref") == heads


async def test_a_mirror_is_read_and_not_changed(bench: Bench) -> None:
    path = bench.repository("shop", {"app.py": "one\n"})
    url = git(path, "remote", "get-url", "origin")
    await bench.ok("add_repo", source="clone", url=f"file://{url}", name="shop")
    assert (await bench.ok("git_log"))["workspace"] == "shop"
    assert (await bench.ok("read_file", path="shop/app.py"))["content"] == "one"
    assert "copy for reading" in await bench.no("git_commit", message="no")
    assert "copy for reading" in await bench.no("write_file", path="shop/app.py", content="no")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/ada/shop.git", "github.com/ada/shop"),
        ("git@github.com:ada/shop.git", "github.com/ada/shop"),
        ("ssh://git@git.example.com/ada/shop", "git.example.com/ada/shop"),
    ],
)
def test_the_hosting_service_is_read_from_the_remote(url: str, name: str) -> None:
    assert pulls.repository(url) == name


def _gh(folder: Path, script: str) -> Path:
    """A program that stands in for gh: it keeps how it was called."""
    folder.mkdir()
    program = folder / "gh"
    program.write_text(
        f'#!/bin/sh\nfor word; do echo "$word" >> {folder}/words; done\npwd >> {folder}/where\n{script}\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


async def test_a_pull_request_is_made_by_gh_with_our_words_alone(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await bench.linked()
    assert "none of GitHub's" in await bench.no("git_create_pr", title="t", branch="main")
    git(path, "remote", "set-url", "origin", "https://github.com/ada/shop.git")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "gh is not installed" in await bench.no("git_create_pr", title="t", branch="promptdock/x")
    fake = _gh(tmp_path / "bin", "echo https://github.com/ada/shop/pull/7")
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    task = Task(slug="calm-otter", project_id=project_key("default"), title="x", branch="promptdock/x")
    await bench.store.insert(task)
    told = await bench.twice("git_create_pr", title="--web", body="$(id)", branch="promptdock/x", base="main")
    assert told == {"pr_url": "https://github.com/ada/shop/pull/7", "branch": "promptdock/x", "base": "main"}
    words = (fake / "words").read_text().splitlines()
    assert words[: len(words) // 2] == [
        "pr", "create", "--repo", "github.com/ada/shop", "--head", "promptdock/x", "--base", "main",
        "--title=--web", "--body=$(id)",
    ]  # fmt: skip
    assert str(path) not in (fake / "where").read_text(), "a repository's own settings are out of its reach"
    assert (await bench.ok("get_task", task_id="calm-otter"))["pr_url"] == told["pr_url"]


async def test_a_pull_request_that_is_there_already_is_that_one_and_a_failure_is_told(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await bench.linked()
    git(path, "remote", "set-url", "origin", "git@github.com:ada/shop.git")
    fake = _gh(
        tmp_path / "bin", "echo 'a pull request already exists:' https://github.com/a/b/pull/3 >&2; exit 1"
    )
    monkeypatch.setenv("PATH", f"{fake}:/usr/bin:/bin")
    assert (await bench.ok("git_create_pr", title="t", branch="x"))["pr_url"].endswith("/3")
    (fake / "gh").write_text("#!/bin/sh\necho you are not logged in >&2; exit 4\n")
    assert "not logged in" in await bench.no("git_create_pr", title="t", branch="x")


async def test_a_warning_tells_that_a_task_is_under_way_in_the_repository(bench: Bench) -> None:
    path = await bench.linked()
    made = await bench.ok("create_task", title="work", repo_id="shop")
    await bench.ok("set_task_status", task_id=made["created"], status="IN_PROGRESS")
    git(path, "branch", "other")
    assert "1 tasks are under way" in json.dumps(await bench.ok("checkout_branch", branch_name="other"))


@pytest.mark.parametrize(("tool", "name"), [("git_push", "branch"), ("push_branch", "branch_name")])
async def test_a_push_that_must_fail_is_known_before_anybody_is_asked(
    tool: str, name: str, bench: Bench
) -> None:
    path = await bench.linked()
    ready = bench.handler.registry.get(tool).ready
    assert ready is not None
    await ready(bench.context())
    await ready(bench.context(), **{name: "main"})
    with pytest.raises(ToolError, match="no branch 'nothing'"):
        await ready(bench.context(), **{name: "nothing"})
    git(path, "remote", "remove", "origin")
    with pytest.raises(ToolError, match="no remote"):
        await ready(bench.context(), **{name: "main"})
    assert "no remote" in await bench.no(tool, **{name: "main"})


async def test_a_repository_is_named_by_its_id_wherever_a_project_is(bench: Bench) -> None:
    """Two repositories in one project: each tool takes `repo_id`, the older spellings too."""
    for name in ("shop", "site"):
        await bench.linked(name, **{"app.py": f"{name}\n"})
    site = {"repo_id": "site"}
    assert (await bench.ok("git_log", **site))["workspace"] == "site"
    assert [row["repo_id"] for row in (await bench.ok("get_git_status", **site))["repos"]] == ["site"]
    assert (await bench.ok("list_directory", **site))["path"] == "site"
    assert (await bench.ok("create_branch", branch_name="feature", **site))["branch"] == "feature"
    (bench.home.parent / "work" / "site" / "app.py").write_text("changed\n")
    assert "changed" in (await bench.ok("git_diff", **site))["diff"]
    assert (await bench.ok("commit_changes", message="Change", **site))["status"] == "committed"
    assert (await bench.ok("push_branch", **site))["branch"] == "feature"
    assert (await bench.ok("checkout_branch", branch_name="main", **site))["status"] == "checked_out"
    assert (await bench.ok("merge_branch", branch_name="feature", **site))["status"] == "merged"
    assert (await bench.ok("git_pull", branch="main", **site))["branch"] == "main"
    assert "does not begin with a repository" in await bench.no("git_changed_files"), "it has to be named"
    assert "no repository called" in await bench.no("git_log", repo_id="nothing")
