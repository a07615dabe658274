"""The reading tools of git, on real repositories, good and poisoned ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.tools.context import Context
from shared.tools.git.read import category, history
from tests.tools.ground import call, commit, context, git, repository, write


@pytest.fixture
def here(tmp_path: Path) -> Context:
    root = repository(tmp_path / "shop", {"app.py": "one\ntwo\n", "docs/a.md": "# a\n"})
    write(root.path, {"app.py": "one\ntwo\nthree\n"})
    commit(root.path, "add three")
    return context(root)


async def test_the_log_lists_the_newest_commits_first(here: Context) -> None:
    told = await call(category, "git_log", here)
    assert [entry["subject"] for entry in told["log"]] == ["add three", "the first commit"]
    assert told["log"][0]["sha"] == git(here.roots["shop"].path, "rev-parse", "HEAD")
    assert (told["workspace"], told["source"]) == ("shop", "repository")


async def test_the_log_of_a_file_has_only_what_changed_it(here: Context) -> None:
    told = await call(category, "git_log", here, path="shop/docs/a.md")
    assert [entry["subject"] for entry in told["log"]] == ["the first commit"]
    assert len((await call(category, "git_log", here, count=1))["log"]) == 1


async def test_the_log_of_a_file_that_is_gone_can_still_be_asked(here: Context) -> None:
    root = here.roots["shop"].path
    (root / "docs" / "a.md").unlink()
    commit(root, "drop it")
    told = await call(category, "git_log", here, path="docs/a.md")
    assert [entry["subject"] for entry in told["log"]] == ["drop it", "the first commit"]


async def test_the_status_tells_what_is_not_committed(here: Context) -> None:
    [clean] = (await call(category, "get_git_status", here))["repos"]
    assert (clean["branch"], clean["clean"], clean["status"]) == ("main", True, "")
    assert [line[13:] for line in clean["recent_commits"]] == ["add three", "the first commit"]
    write(here.roots["shop"].path, {"app.py": "changed\n", "new file.py": "x\n"})
    [dirty] = (await call(category, "get_git_status", here))["repos"]
    assert dirty["status"].splitlines() == [" M app.py", "?? new file.py"]


async def test_the_diff_is_of_what_is_not_committed_or_against_a_base(here: Context) -> None:
    root = here.roots["shop"].path
    git(root, "switch", "--quiet", "-c", "feature")
    write(root, {"app.py": "one\ntwo\nthree\nfour\n"})
    assert "+four" in (await call(category, "git_diff", here))["diff"]
    commit(root, "add four")
    assert (await call(category, "git_diff", here))["diff"] == ""
    assert "+four" in (await call(category, "git_diff", here, base_branch="main"))["diff"]
    assert (await call(category, "git_diff", here, base_branch="main", path="docs"))["diff"] == ""


async def test_a_large_diff_is_cut_and_says_so(here: Context) -> None:
    write(here.roots["shop"].path, {"app.py": "a changed line\n" * 20_000})
    told = await call(category, "git_diff", here)
    assert told["truncated"]
    assert len(told["diff"]) < 110_000


async def test_changed_files_are_compared_with_the_base(here: Context) -> None:
    root = here.roots["shop"].path
    git(root, "switch", "--quiet", "-c", "feature")
    write(root, {"web/page.ts": "x\n"})
    commit(root, "add a page")
    told = await call(category, "git_changed_files", here, base_branch="main")
    assert (told["files"], told["base_branch"], told["count"]) == (["web/page.ts"], "main", 1)


async def test_blame_tells_who_wrote_a_line(here: Context) -> None:
    told = await call(history, "git_blame", here, path="shop/app.py", line_start=3, line_end=3)
    assert "Ada" in told["blame"]
    assert "three" in told["blame"]
    assert "two" not in told["blame"]


async def test_one_of_several_repositories_has_to_be_named(tmp_path: Path) -> None:
    roots = [repository(tmp_path / name, {"a.py": f"{name}\n"}) for name in ("one", "two")]
    here = context(*roots)
    with pytest.raises(ToolError, match="one, two"):
        await call(category, "git_changed_files", here)
    for arguments in ({"workspace": "two"}, {"project_id": "two"}, {"path": "two/a.py"}, {"path": "two"}):
        assert (await call(category, "git_log", here, **arguments))["workspace"] == "two"
    with pytest.raises(ToolError, match=r"workspace called 'three'\. there are: one, two"):
        await call(category, "git_log", here, workspace="three")


async def test_where_no_repository_is_named_all_of_the_project_are_reported_on(tmp_path: Path) -> None:
    roots = [repository(tmp_path / name, {"a.py": f"{name}\n"}) for name in ("one", "two")]
    here = context(*roots)
    write(tmp_path / "two", {"a.py": "changed\n"})
    logs = await call(category, "git_log", here)
    assert [(log["workspace"], len(log["log"])) for log in logs["repos"]] == [("one", 1), ("two", 1)]
    diffs = await call(category, "git_diff", here)
    assert [bool(diff["diff"]) for diff in diffs["repos"]] == [False, True]
    (tmp_path / "one" / ".git" / "HEAD").unlink()
    broken, whole = (await call(category, "git_log", here))["repos"]
    assert broken["workspace"] == "one" and broken["error"] and whole["log"]
    assert logs["source"] == diffs["source"] == "repository"


@pytest.mark.parametrize(
    "ref", ["--output=/tmp/x", "--exec=touch C", "a..b", "a b", "-", "nowhere", "HEAD@{1}"]
)
async def test_a_base_that_is_no_commit_is_refused(here: Context, ref: str) -> None:
    with pytest.raises(ToolError):
        await call(category, "git_diff", here, base_branch=ref)


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "shop/../../outside", ".git/config", "nul\0"])
async def test_a_path_outside_of_the_repository_is_refused(here: Context, path: str) -> None:
    for tools, name in ((category, "git_log"), (category, "git_diff"), (history, "git_blame")):
        with pytest.raises(ToolError) as refused:
            await call(tools, name, here, path=path)
        assert str(here.roots["shop"].path) not in str(refused.value)


@pytest.mark.parametrize(
    "key", ["core.fsmonitor", "diff.external", "core.pager", "alias.log", "filter.x.clean"]
)
async def test_what_a_repository_configures_is_never_run(here: Context, tmp_path: Path, key: str) -> None:
    root, canary = here.roots["shop"].path, tmp_path / "canary"
    git(root, "config", key, f"!touch {canary}" if key.startswith("alias") else f"touch {canary}")
    write(root, {".gitattributes": "* filter=x diff=x\n", "app.py": "changed\n"})
    for tools, name in (
        (category, "get_git_status"),
        (category, "git_log"),
        (category, "git_diff"),
        (category, "git_changed_files"),
        (history, "git_blame"),
    ):
        arguments = {"path": "app.py"} if tools is history else {}
        try:
            await call(tools, name, here, **arguments)
        except ToolError as refused:
            assert "config" in str(refused)  # refusing is right, so is running without it
    assert not canary.exists()


async def test_a_folder_that_is_no_repository_is_an_error(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop", {"a.py": "x\n"})
    (root.path / ".git").rename(tmp_path / "gone")
    with pytest.raises(ToolError, match="no git repository"):
        await call(category, "git_log", context(root))
