"""Writing and editing files and running commands, in a person's repository and in a task's workspace."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from shared.tools.context import Root
from tests.tools.bench import Bench


async def test_a_file_is_written_whole_and_says_what_was_there(bench: Bench) -> None:
    path = await bench.linked()
    told = await bench.ok("write_file", path="shop/new/deep.txt", content="hällo\n")
    assert (told["path"], told["created"], told["bytes"]) == ("shop/new/deep.txt", True, 7)
    assert (path / "new/deep.txt").read_text() == "hällo\n"
    told = await bench.twice("write_file", path="app.py", content="x")
    assert (told["created"], told["before"]) == (False, hashlib.sha256(b"one\ntwo\n").hexdigest())


async def test_a_text_is_replaced_where_it_occurs_once_or_everywhere_on_request(bench: Bench) -> None:
    path = await bench.linked("shop", **{"a.txt": "one two one\n"})
    assert "2 times" in await bench.no("edit_file", path="a.txt", old_string="one", new_string="1")
    told = await bench.ok("edit_file", path="a.txt", old_string="two", new_string="2")
    assert (told["replacements"], told["line"]) == (1, 1)
    told = await bench.ok("edit_file", path="a.txt", old_string="one", new_string="1", replace_all=True)
    assert (told["replacements"], (path / "a.txt").read_text()) == (2, "1 2 1\n")
    assert "not occur" in await bench.no("edit_file", path="a.txt", old_string="x", new_string="y")
    assert "empty" in await bench.no("edit_file", path="a.txt", old_string="", new_string="y")
    assert "the same" in await bench.no("edit_file", path="a.txt", old_string="1", new_string="1")


async def test_an_edit_that_was_made_before_a_crash_is_known_again(bench: Bench) -> None:
    path = await bench.linked("shop", **{"a.txt": "one\n"})
    notes: list[dict[str, Any]] = []

    async def intend(note: dict[str, Any]) -> None:
        notes.append(note)

    words = {"path": "a.txt", "old_string": "one", "new_string": "one one"}
    first = await bench.run("edit_file", here={"intend": intend}, **words)
    again = await bench.run("edit_file", here={"intend": intend, "intended": notes[0]}, **words)
    assert (again, len(notes), (path / "a.txt").read_text()) == (first, 1, "one one\n")
    (path / "a.txt").write_text("one\n")  # the crash came between the note and the file
    assert (await bench.run("edit_file", here={"intended": notes[0]}, **words)) == first
    assert (path / "a.txt").read_text() == "one one\n"


OUTSIDE = [
    "/etc/passwd", "../../x", "shop/../../x", "link", "folder/x", ".git/config", "shop/.GIT/hooks/pre-commit",
    "pipe", "nul\0name", "$HOME/x", "docs/../../../x", "...", "shop/",
]  # fmt: skip


async def test_nothing_is_written_outside_of_the_repository_or_inside_git(bench: Bench) -> None:
    path = await bench.linked()
    (path / "link").symlink_to(bench.home / "target")
    (path / "folder").symlink_to("/tmp")
    os.mkfifo(path / "pipe")
    config = (path / ".git/config").read_text()
    for name in OUTSIDE:
        said = await bench.no("write_file", path=name, content="evil")
        assert str(path) not in said, "where the workspace lies is nobody's business"
        await bench.no("edit_file", path=name, old_string="a", new_string="b")
    assert (path / ".git/config").read_text() == config
    assert not bench.home.joinpath("target").exists()
    assert "unicode" in await bench.no("write_file", path="a", content="\ud800")


async def test_a_command_runs_in_its_folder_and_its_output_is_bounded(bench: Bench) -> None:
    await bench.linked()
    told = await bench.ok("run_command", command="cat a.md; echo bad >&2; exit 3", working_dir="shop/docs")
    assert (told["returncode"], told["stdout"], told["stderr"]) == (3, "# a\n", "bad\n")
    told = await bench.ok("run_command", command="yes | head -c 100000", working_dir="default")
    assert told["truncated"] and len(told["stdout"]) < 4200
    told = await bench.ok("run_command", command="sleep 30", working_dir="shop", timeout=1)
    assert told["timed_out"] and "after 1 s" in told["warning"]
    for folder in ("../..", "/etc", "shop/app.py", "shop/$(id)", "nowhere/x", ".git"):
        await bench.no("run_command", command="true", working_dir=folder)
    assert "NUL" in await bench.no("run_command", command="a\0b", working_dir="shop")
    assert "cannot take" in await bench.no("run_command", command="true", working_dir="shop", timeout=121)


async def test_a_command_is_confined_to_its_workspace(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.linked()
    secret = bench.home.parent / "secret"
    secret.write_text("treasure")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    told = await bench.ok("run_command", command=f"cat {secret}; env; echo x > made.txt", working_dir="shop")
    if bench.repos.sandbox.confines:
        assert "treasure" not in told["stdout"]
    assert "sk-secret" not in told["stdout"]
    assert (bench.home.parent / "work/shop/made.txt").exists()


async def test_in_a_task_the_workspace_of_the_task_is_what_is_changed(bench: Bench, tmp_path: Path) -> None:
    tree, other = tmp_path / "tree", tmp_path / "reading"
    for folder in (tree, other):
        folder.mkdir()
    roots = {"tree": Root("tree", tree, writable=True), "reading": Root("reading", other)}
    here = {"roots": roots, "agent": "backend"}
    assert (await bench.run("write_file", here=here, path="tree/a.txt", content="x"))["written"]
    refused = await bench.run("write_file", here=here, path="reading/a.txt", content="x")
    assert ("cannot be changed" in refused["error"], list(other.iterdir())) == (True, [])
    ran = await bench.run("run_command", here=here, command="cat a.txt", working_dir="tree")
    assert ran["stdout"] == "x"


async def test_without_a_home_or_a_repository_the_tools_say_so(bench: Bench) -> None:
    assert "no repository or workspace" in await bench.no("write_file", path="a", content="x")
    bench.given.clear()
    assert "no repository" in await bench.no("write_file", path="a", content="x")
    assert "no repository" in await bench.no("run_command", command="true", working_dir="a")
