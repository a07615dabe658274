"""What others packed, named or nested: archives with links, strange names, and what has no end."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.ground import Ground, whole
from tests.attacks.test_paths import told


async def test_a_zip_leads_out_neither_when_it_is_unpacked_nor_when_it_is_read(
    builder: Ground, canary: Path
) -> None:
    """Members that climb, are absolute, or go through a link; by three programs, and one that believes all."""
    with zipfile.ZipFile(builder.root / "evil.zip", "w") as made:
        link = zipfile.ZipInfo("out")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        made.writestr(link, str(canary.parent))
        for name in ("../outside.txt", str(canary), "out/outside.txt", "..\\outside.txt"):
            made.writestr(name, "evil")
    (builder.root / "careless.py").write_text(
        "import os, sys, zipfile\n"
        "made = zipfile.ZipFile('evil.zip')\n"
        "for found in made.infolist():\n"
        "    try:\n"
        "        if found.external_attr >> 28 == 10:\n"
        "            os.symlink(made.read(found), found.filename)\n"
        "        else:\n"
        "            open(found.filename, 'wb').write(made.read(found))\n"
        "    except OSError as error:\n"
        "        print(error)\n"
    )
    for command in (
        "unzip -o -: evil.zip",
        "python3 -m zipfile -e evil.zip .",
        "rm -f out; python3 careless.py",
    ):
        result = await builder.call("bash", command=command)
        assert "exit_code" in result and whole(canary), (command, result)
    assert (builder.root / "out").is_symlink(), "it did what it could"
    for tool, more in (("view", {}), ("read_file", {}), ("create_file", {"content": "x"})):
        assert "error" in await builder.call(tool, path="out/outside.txt", **more)
    told(await builder.call("grep", pattern="CANARY"), builder)
    told(await builder.call("list_directory", path="out"), builder)
    assert whole(canary)


async def test_hard_links_and_devices_of_an_archive_are_none_of_ours(builder: Ground, canary: Path) -> None:
    archive = builder.root / "evil.tar"
    with tarfile.open(archive, "w") as made:
        for name, kind, target in (
            ("hard", tarfile.LNKTYPE, str(canary)),
            ("climbs", tarfile.LNKTYPE, "../outside.txt"),
            ("null", tarfile.CHRTYPE, ""),
            ("pipe", tarfile.FIFOTYPE, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.devmajor, member.devminor = kind, target, 1, 3
            made.addfile(member)
    await builder.call("bash", command="tar -xPf evil.tar; ls -la")
    began = time.monotonic()
    for name in ("hard", "climbs", "null", "pipe"):
        assert "error" in await builder.call("view", path=name), name
        await builder.call("create_file", path=name, content="x")
    told(await builder.call("grep", pattern="CANARY"), builder)
    assert whole(canary) and time.monotonic() - began < 20, "a pipe that nobody fills holds nobody up"


async def test_a_folder_becomes_a_link_between_two_calls_and_leads_nowhere(
    builder: Ground, canary: Path
) -> None:
    (builder.root / "d").mkdir()
    assert "error" not in await builder.call("create_file", path="d/outside.txt", content="inside")
    await builder.call("bash", command=f"rm -r d && ln -s {canary.parent} d")
    for tool, more in (("view", {}), ("str_replace", {"old_str": "C", "new_str": "x"})):
        assert "error" in await builder.call(tool, path="d/outside.txt", **more)
    assert whole(canary)


@pytest.mark.parametrize(
    "name",
    ["\x1b[2Ja.txt", "a\u202etxt.b", "-rf", "--help", "$(touch CANARY)", "';touch CANARY;'", "*"],
)
async def test_a_strange_name_is_a_name_to_every_tool(name: str, builder: Ground, canary: Path) -> None:
    assert "error" not in await builder.call("create_file", path=f"src/{name}", content="findme\n")
    assert (builder.root / "src" / name).read_text() == "findme\n"
    assert "findme" in str(await builder.call("view", path=f"src/{name}"))
    for tool, more in (
        ("grep", {"pattern": "findme"}), ("glob_files", {"pattern": "**/*"}), ("list_directory", {"path": "src"}),
    ):  # fmt: skip
        assert "error" not in await builder.call(tool, **more), tool
    assert not (builder.root / "CANARY").exists() and whole(canary)


async def test_a_name_that_is_no_text_hides_no_other(builder: Ground) -> None:
    (builder.root / "src" / os.fsdecode(b"\xff\xfe.txt")).write_text("findme")
    for tool, more in (
        ("grep", {"pattern": "a = 1"}), ("glob_files", {"pattern": "**/*"}), ("list_directory", {"path": "src"}),
    ):  # fmt: skip
        result = await builder.call(tool, **more)
        assert "a.py" in str(result), tool
        json.dumps(result, ensure_ascii=False).encode()


@pytest.fixture
def endless(builder: Ground) -> Iterator[Ground]:
    """A workspace with folders in folders, and a file of a terabyte that takes no room."""
    code = "import os\nfor _ in range(300):\n os.mkdir('d'); os.chdir('d')"
    subprocess.run([sys.executable, "-c", code], cwd=builder.root, check=True)
    with (builder.root / "sparse.bin").open("wb") as file:
        file.truncate(1 << 40)
    yield builder
    subprocess.run(["rm", "-rf", "d"], cwd=builder.root, check=True)  # it lies too deep for others


async def test_what_is_too_deep_or_too_large_ends_soon(endless: Ground) -> None:
    began = time.monotonic()
    for tool, more in (
        ("grep", {"pattern": "a = 1"}), ("glob_files", {"pattern": "{a,b}" * 30}),
        ("glob_files", {"pattern": "**/" * 200 + "x"}),
    ):  # fmt: skip
        assert "error" not in await endless.call(tool, **more), tool
    for tool in ("view", "read_file"):
        assert "error" in await endless.call(tool, path="sparse.bin")
    assert time.monotonic() - began < 30
