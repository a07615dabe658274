"""Paths and links: no tool reads, changes or makes anything outside of its workspace."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.guard.files.jail import Jail
from tests.attacks.ground import CANARY, HOSTILE, Ground, git, whole

PATHS = HOSTILE["paths"]
TRIES = 10_000


def changes(folder: Path) -> dict[str, bytes]:
    """Everything beside the workspace that a tool could have touched."""
    found = [path for path in folder.iterdir() if path.is_file()]
    return {path.name: path.read_bytes() for path in found}


def told(result: object, ground: Ground) -> str:
    """A refusal, which must not tell where the workspace lies."""
    text = str(result)
    assert CANARY not in text and "root:x:0" not in text, text
    assert str(ground.root.parent) not in text, "it tells where the workspace lies"
    return text


@pytest.mark.parametrize("path", PATHS["refused"], ids=ascii)
async def test_a_path_that_leads_out_is_refused_by_every_tool(path: str, builder: Ground) -> None:
    before = changes(builder.root.parent)
    calls = [
        await builder.call("view", path=path),
        await builder.call("read_file", path=path),
        await builder.call("create_file", path=path, content="x"),
        await builder.call("str_replace", path=path, old_str="C", new_str="x"),
    ]
    for result in calls:
        assert "error" in result or "entries" in result or path in (".", "", "/"), result
        told(result, builder)
    assert "error" in calls[2], "it was written"
    assert changes(builder.root.parent) == before


@pytest.mark.parametrize("path", PATHS["inside"], ids=ascii)
async def test_encoded_and_lookalike_paths_are_names_in_the_workspace(path: str, builder: Ground) -> None:
    before = changes(builder.root.parent)
    assert "error" in await builder.call("view", path=path)
    written = await builder.call("create_file", path=path, content="mine")
    if "error" not in written:
        assert (builder.root / path).read_text() == "mine"
        assert (builder.root / path).resolve().is_relative_to(builder.root)
    assert changes(builder.root.parent) == before


@pytest.mark.parametrize("path", PATHS["never_written"])
async def test_git_s_own_folder_is_written_by_no_file_tool(path: str, builder: Ground) -> None:
    head = (builder.root / ".git" / "HEAD").read_bytes()
    assert "error" in await builder.call("create_file", path=path, content="#!/bin/sh\ntouch CANARY\n")
    assert (builder.root / ".git" / "HEAD").read_bytes() == head
    assert not (builder.root / ".git" / "hooks" / "pre-commit").exists()


@pytest.mark.parametrize("path", PATHS["asked"])
async def test_files_that_other_programs_obey_are_asked_for(path: str, builder: Ground) -> None:
    result = await builder.call("create_file", path=path, content="x")
    assert "nobody who could be asked" in result["why"]
    assert not (builder.root / path).exists()
    assert "error" not in await builder.call("create_file", path="src/new.py", content="x")


@pytest.mark.parametrize(
    "command", ["echo x > .env", "cp f .mcp.json", "tee CLAUDE.md < f", "ln -s f .claude/x"]
)
async def test_commands_that_name_such_files_are_asked_for(command: str, builder: Ground) -> None:
    assert "nobody who could be asked" in (await builder.call("bash", command=command))["why"]


async def test_no_link_leads_out(builder: Ground, canary: Path) -> None:
    root = builder.root
    for name, target in {
        "l": "/etc/passwd",
        "r": "/",
        "b": "/etc",
        "o": "../outside.txt",
        "up": "..",
    }.items():
        (root / name).symlink_to(target)
    (root / "a").symlink_to(root / "b")
    (root / "loop").symlink_to("loop")
    (root / "proc").symlink_to("/proc/self/root")
    for path in ("l", "r/etc/passwd", "a/passwd", "o", "up/outside.txt", "loop", "proc/etc/passwd"):
        for tool, more in (("view", {}), ("read_file", {}), ("create_file", {"content": "x"})):
            result = await builder.call(tool, path=path, **more)
            assert "error" in result, (tool, path, result)
            told(result, builder)
    told(await builder.call("grep", pattern="CANARY|root:x"), builder)
    assert whole(canary)


async def test_a_second_name_of_an_outer_file_is_not_written(builder: Ground, canary: Path) -> None:
    os.link(canary, builder.root / "h")
    assert "error" in await builder.call("create_file", path="h", content="x")
    assert "error" in await builder.call("str_replace", path="h", old_str="CANARY", new_str="x")
    assert whole(canary)


async def test_an_archive_is_unpacked_in_the_sandbox_and_nowhere_else(builder: Ground, canary: Path) -> None:
    """Members that climb, are absolute, or go through a link that the archive itself brings."""
    archive = builder.root / "evil.tar"
    with tarfile.open(archive, "w") as made:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, str(canary.parent)
        made.addfile(link)
        for name in ("../outside.txt", str(canary), "out/outside.txt"):
            made.add(builder.root / "f", arcname=name, filter=lambda member: member)
    code = "import tarfile; tarfile.open('evil.tar').extractall('.', filter='fully_trusted')"
    for command in ("tar -xPf evil.tar", f'python3 -c "{code}"'):
        await builder.call("bash", command=command)
        assert whole(canary)


async def test_git_does_not_check_out_through_a_link(builder: Ground, canary: Path) -> None:
    """A tree that holds a linked folder, and a file below it."""
    blob = git(builder.root, "hash-object", "-w", "f")
    for entry in (f"120000,{blob},d", f"100644,{blob},d/outside.txt"):
        git(builder.root, "update-index", "--add", "--cacheinfo", entry)
    (builder.root / "d").symlink_to(canary.parent)
    await builder.call("bash", command="git checkout -- d/outside.txt; git checkout-index -f -a")
    assert whole(canary)
    assert "error" in await builder.call("view", path="d/outside.txt")


def test_a_link_that_is_swapped_ten_thousand_times_never_leads_out(builder: Ground, canary: Path) -> None:
    """A folder and a link to the outside change places while a file below it is read and written."""
    root = builder.root
    (root / "real").mkdir()
    (root / "real" / "outside.txt").write_text("inside")
    code = (
        "import os, sys\nos.chdir(sys.argv[1])\nos.symlink('..', 'out')\nprint('ready', flush=True)\n"
        "def move(a, b):\n try:\n  os.rename(a, b)\n except OSError:\n  pass\n"
        "while True:\n move('real', 'd'); move('d', 'real'); move('out', 'd'); move('d', 'out')\n"
    )
    swapping = subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE)
    try:
        assert swapping.stdout and swapping.stdout.readline() == b"ready\n"
        jail, ends, seen = Jail(root, writable=True), time.monotonic() + 60, 0
        for number in range(TRIES):
            try:
                if number % 20 == 0:
                    jail.write("d/outside.txt", b"inside")
                else:
                    assert jail.read("d/outside.txt") == b"inside"
                seen += 1
            except ToolError:
                pass
            assert time.monotonic() < ends, f"only {number} tries"
        assert swapping.poll() is None
    finally:
        swapping.kill()
        swapping.wait(10)
        if swapping.stdout:
            swapping.stdout.close()
    assert seen > TRIES / 100, "the folder was never there"
    assert whole(canary)
