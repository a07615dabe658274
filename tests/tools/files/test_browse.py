"""The reading tools of category files, on real repositories."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ToolError
from shared.guard.sandbox.sandbox import Sandbox
from shared.tools import checkouts
from shared.tools.context import Context
from shared.tools.files import search as engine
from shared.tools.files.browse import category
from tests.tools.ground import call, context, package, repository, write

FILES = {
    "app/main.py": "import os\n\n\ndef main() -> None:\n    print('Hello')\n",
    "app/users.py": "def users():\n    return ['hello', 'world']\n",
    "web/index.ts": "export const hello = 1;\n",
    "notes with spaces.md": "# hello\n",
    ".gitignore": "secret.txt\nbuild/\n",
    "secret.txt": "hello secret\n",
    "build/out.js": "hello built\n",
    "node_modules/x/index.js": "hello installed\n",
    ".github/ci.yml": "run: hello\n",
}


@pytest.fixture
def here(tmp_path: Path) -> Context:
    return context(repository(tmp_path / "shop", FILES))


@pytest.fixture(params=["in the sandbox", "without one"], autouse=True)
def confined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> None:
    """Searches run in the sandbox; where there is none, what they found is looked at again."""
    if request.param == "in the sandbox":
        monkeypatch.setattr(checkouts, "sandbox", lambda _here: sandbox)


@pytest.fixture(params=["ripgrep", "python"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both engines: ripgrep, and what stands in for it where it is missing."""
    if request.param == "python":
        monkeypatch.setattr(engine, "ripgrep", lambda: None)
    else:
        assert engine.ripgrep(), "the ripgrep wheel is a dependency"
    return str(request.param)


async def grep(here: Context, pattern: str, **more: Any) -> list[tuple[str, int, str]]:
    found = await call(category, "grep", here, pattern=pattern, **more)
    return [(m["path"], m["line"], m["text"]) for m in found["matches"]]


# Reading


async def test_a_file_is_read_with_its_number_of_lines_and_marked_as_from_outside(here: Context) -> None:
    assert await call(category, "read_file", here, path="shop/app/users.py") == {
        "path": "shop/app/users.py",
        "content": FILES["app/users.py"].rstrip("\n"),
        "lines": 2,
        "offset": 1,
        "source": "repository",
    }


async def test_the_name_of_the_only_repository_may_be_left_out(here: Context) -> None:
    assert (await call(category, "read_file", here, path="app/users.py"))["path"] == "shop/app/users.py"


async def test_a_part_of_a_file_says_where_it_goes_on(here: Context) -> None:
    part = await call(category, "read_file", here, path="app/main.py", offset=4, limit=1, numbered=True)
    assert part["content"] == "     4\tdef main() -> None:"
    assert (part["truncated"], part["next_offset"]) == (True, 5)


async def test_an_answer_is_bounded_whatever_the_file_holds(tmp_path: Path) -> None:
    text = "x" * 900_000 + "\n" + "a line of the file\n" * 60_000
    here = context(repository(tmp_path / "shop", {"long.txt": text}))
    part = await call(category, "read_file", here, path="long.txt", max_lines=20_000)
    assert len(part["content"]) < 110_000
    assert "898000 more characters" in part["content"]
    assert part["truncated"]


async def test_a_line_past_the_end_is_an_error_that_says_how_long_the_file_is(here: Context) -> None:
    with pytest.raises(ToolError, match="has 2 lines"):
        await call(category, "read_file", here, path="app/users.py", offset=3)


async def test_an_empty_file_is_no_error(tmp_path: Path) -> None:
    here = context(repository(tmp_path / "shop", {"empty.py": ""}))
    assert (await call(category, "read_file", here, path="empty.py"))["lines"] == 0


async def test_binary_files_are_not_read(here: Context) -> None:
    (here.roots["shop"].path / "logo.png").write_bytes(b"\x89PNG\0\0")
    with pytest.raises(ToolError, match="binary"):
        await call(category, "read_file", here, path="logo.png")


OUTSIDE = [
    "",
    "/etc/passwd",
    "shop//etc/passwd",
    "../../../../../../etc/passwd",
    "shop/app/../../../../../../../etc/passwd",
    "....//....//etc/passwd",
    "$HOME/.aws/credentials",
    "/proc/self/environ",
    "file:///etc/passwd",
    "nul\0name",
    "link",
    "folder/passwd",
    "hop/passwd",
    "pipe",
    ".git/config",
    "shop/.GIT/config",
    "inner/config",
    "%2e%2e%2fetc%2fpasswd",
    "．．/．．/etc/passwd",
    "..\\..\\etc\\passwd",
]


@pytest.mark.parametrize("path", OUTSIDE)
async def test_nothing_outside_the_repository_or_inside_git_is_read(here: Context, path: str) -> None:
    root = here.roots["shop"].path
    (root / "link").symlink_to("/etc/passwd")
    (root / "folder").symlink_to("/etc")
    (root / "hop").symlink_to("folder")
    (root / "inner").symlink_to(".git")
    os.mkfifo(root / "pipe")
    for tool in ("read_file", "list_directory"):
        if tool == "list_directory" and path == "":
            continue
        with pytest.raises(ToolError) as refused:
            await call(category, tool, here, path=path)
        assert str(root) not in str(refused.value), "the host's path is nobody's business"


async def test_a_link_inside_of_the_repository_is_read(here: Context) -> None:
    (here.roots["shop"].path / "latest.py").symlink_to("app/users.py")
    assert (await call(category, "read_file", here, path="latest.py"))["lines"] == 2


# Listing


async def test_a_folder_is_listed_without_what_belongs_to_git(here: Context) -> None:
    entries = (await call(category, "list_directory", here))["entries"]
    assert {"name": "app", "kind": "dir", "size": 0} in entries
    assert ".git" not in {entry["name"] for entry in entries}


async def test_without_a_path_several_repositories_are_listed(tmp_path: Path) -> None:
    roots = [repository(tmp_path / name, {"a.py": "x = 1\n"}, name) for name in ("frontend", "backend")]
    listed = await call(category, "list_directory", context(*roots))
    assert [(e["name"], e["kind"], e["holds"]) for e in listed["entries"]] == [
        ("frontend", "repository", "frontend"),
        ("backend", "repository", "backend"),
    ]
    inner = await call(category, "list_directory", context(*roots), workspace="backend")
    assert [entry["name"] for entry in inner["entries"]] == ["a.py"]


async def test_the_repositories_of_another_project_are_not_shown_by_mistake(here: Context) -> None:
    with pytest.raises(ToolError, match="not open here"):
        await call(category, "list_directory", here, project_id="another")
    assert (await call(category, "list_directory", here, project_id="default"))["path"] == "shop"


# Searching


@pytest.mark.usefixtures("either")
async def test_grep_finds_lines_in_order_with_their_numbers(here: Context) -> None:
    assert await grep(here, "def \\w+", glob="*.py") == [
        ("shop/app/main.py", 4, "def main() -> None:"),
        ("shop/app/users.py", 1, "def users():"),
    ]


@pytest.mark.usefixtures("either")
async def test_grep_takes_a_file_a_folder_or_everything(tmp_path: Path) -> None:
    roots = [repository(tmp_path / name, {"src/a.py": f"{name}\nshared\n"}) for name in ("one", "two")]
    here = context(*roots)
    assert [hit[0] for hit in await grep(here, "shared")] == ["one/src/a.py", "two/src/a.py"]
    assert await grep(here, "shared", path="two/src") == [("two/src/a.py", 2, "shared")]
    assert await grep(here, "shared", path="two/src/a.py") == [("two/src/a.py", 2, "shared")]


@pytest.mark.usefixtures("either")
async def test_grep_has_modes_for_names_and_counts(here: Context) -> None:
    names = await call(category, "grep", here, pattern="hello", output_mode="files_with_matches", path="app")
    assert names["files"] == ["shop/app/users.py"]
    counts = await call(
        category, "grep", here, pattern="hello", output_mode="count", case_insensitive=True, path="app"
    )
    assert counts["counts"] == [
        {"path": "shop/app/main.py", "count": 1},
        {"path": "shop/app/users.py", "count": 1},
    ]
    assert counts["total"] == 2


async def test_grep_shows_lines_around_a_match(here: Context) -> None:
    found = await call(category, "grep", here, pattern="def main", context=1)
    assert found["matches"][0] == {
        "path": "shop/app/main.py",
        "line": 4,
        "text": "def main() -> None:",
        "before": [""],
        "after": ["    print('Hello')"],
    }


@pytest.mark.usefixtures("either")
async def test_a_search_is_cut_at_its_bound_and_says_so(tmp_path: Path) -> None:
    here = context(repository(tmp_path / "shop", {"a.txt": "hit\n" * 50}))
    found = await call(category, "grep", here, pattern="hit", max_results=10)
    assert (len(found["matches"]), found["truncated"]) == (10, True)
    whole = await call(category, "grep", here, pattern="hit", max_results=50)
    assert (len(whole["matches"]), whole.get("truncated")) == (50, None)


@pytest.mark.usefixtures("either")
async def test_long_lines_are_cut_to_a_quotable_beginning(tmp_path: Path) -> None:
    line = "needle " + "x" * 100_000
    here = context(repository(tmp_path / "shop", {"min.js": line + "\n"}))
    ((_, _, text),) = await grep(here, "needle")
    assert len(text) <= 400
    assert line.startswith(text)


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("pattern", ["(unclosed", "[a", "*", "nul\0"])
async def test_a_bad_pattern_is_an_error_that_the_model_can_read(here: Context, pattern: str) -> None:
    with pytest.raises(ToolError, match=r"search could not be made|pattern cannot be used"):
        await grep(here, pattern)


async def test_a_bad_glob_is_an_error_too(here: Context) -> None:
    with pytest.raises(ToolError, match="glob"):
        await grep(here, "x", glob="[")


async def test_a_pattern_that_looks_like_an_option_is_a_pattern(here: Context) -> None:
    assert await grep(here, "--pre=/bin/sh") == []
    assert await grep(here, "-> None", glob="*.py") == [("shop/app/main.py", 4, "def main() -> None:")]


async def test_an_exploding_pattern_costs_ripgrep_nothing(tmp_path: Path) -> None:
    here = context(repository(tmp_path / "shop", {"bomb.txt": "a" * 40 + "!\n"}))
    assert await grep(here, "(a+)+$") == []


async def test_an_exploding_pattern_is_ended_where_python_has_to_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "ripgrep", lambda: None)
    monkeypatch.setattr(engine, "SECONDS", 1.0)
    here = context(repository(tmp_path / "shop", {"bomb.txt": "a" * 40 + "!\n"}))
    begun = time.monotonic()
    with pytest.raises(ToolError, match="stopped"):
        await grep(here, "(a+)+$")
    assert time.monotonic() - begun < 10


@pytest.mark.usefixtures("either")
async def test_a_search_never_leaves_the_repository(here: Context, tmp_path: Path) -> None:
    root = here.roots["shop"].path
    write(tmp_path / "outside", {"canary.txt": "canary\n"})
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to(tmp_path / "outside" / "canary.txt")
    (root / ".git" / "canary").write_text("canary\n")
    assert await grep(here, "canary") == []
    for path in ("folder", "file", "../outside", "shop/../../outside", "/", "folder/canary.txt", "nowhere"):
        with pytest.raises(ToolError) as refused:
            await grep(here, "canary", path=path)
        assert str(tmp_path) not in str(refused.value)


async def test_a_folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere(
    here: Context, tmp_path: Path
) -> None:
    root = here.roots["shop"].path
    write(tmp_path / "outside", {"canary.txt": "canary\n"})
    (root / "inner").mkdir()
    (root / "door").symlink_to(tmp_path / "outside")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for name in ("inner", "door"):
                (root / name).rename(root / "here")
                time.sleep(0.0002)  # a search that is about to look is let in between
                (root / "here").rename(root / name)

    thread = threading.Thread(target=swap)
    thread.start()
    searched = 0
    end = time.monotonic() + 30
    try:
        while searched < 40 and time.monotonic() < end:
            with contextlib.suppress(ToolError):
                assert await grep(here, "canary", path="here") == []
                searched += 1
    finally:
        over.set()
        thread.join(10)
    assert searched, "the folder was never met as a folder, so nothing was tried"


async def test_what_the_repository_ignores_or_installs_is_left_out_and_hidden_files_are_not(
    here: Context,
) -> None:
    files = {path for path, _, _ in await grep(here, "hello")}
    assert "shop/.github/ci.yml" in files
    assert not files & {"shop/secret.txt", "shop/build/out.js", "shop/node_modules/x/index.js"}


async def test_ignore_rules_of_folders_above_the_repository_do_not_count(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / ".ignore").write_text("*\n")
    here = context(repository(tmp_path / "shop", {"a.py": "hello\n"}))
    assert await grep(here, "hello") == [("shop/a.py", 1, "hello")]


@pytest.mark.usefixtures("either")
async def test_globs_find_files_by_name_at_any_depth(here: Context) -> None:
    async def files(**arguments: str) -> list[str]:
        return list((await call(category, "glob_files", here, **arguments))["files"])

    assert await files(pattern="*.py") == ["shop/app/main.py", "shop/app/users.py"]
    assert await files(pattern="app/**/*.{py,ts}") == ["shop/app/main.py", "shop/app/users.py"]
    assert await files(pattern="*.ts", path="web") == ["shop/web/index.ts"]
    assert await files(pattern="*spaces*") == ["shop/notes with spaces.md"]


async def test_search_files_greps_or_finds(here: Context) -> None:
    found = await call(category, "search_files", here, pattern="user", mode="find")
    assert found["files"] == ["shop/app/users.py"]
    lines = await call(category, "search_files", here, pattern="return", path="app")
    assert lines["matches"] == [
        {"path": "shop/app/users.py", "line": 2, "text": "    return ['hello', 'world']"}
    ]


async def test_a_real_package_is_searched_in_no_time(tmp_path: Path) -> None:
    here = context(package("redis", tmp_path / "driver"))
    begun = time.monotonic()
    found = await grep(here, r"^class Redis\(")
    assert {path for path, _, _ in found} == {"driver/redis/client.py", "driver/redis/asyncio/client.py"}
    assert time.monotonic() - begun < 5


async def test_without_any_repository_the_person_is_told_what_to_do() -> None:
    with pytest.raises(ToolError, match="promptdock repo add"):
        await grep(context(), "x")
