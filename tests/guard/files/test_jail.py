"""The jail: what lies outside of the workspace can be neither read nor changed, whatever the path is."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.guard.files import beneath, lock
from shared.guard.files.jail import Jail

HOSTILE = [
    "", " ", "..", "../outside.txt", "/etc/passwd", "a/../../../etc/shadow", "src/../../outside.txt", "a\0b",
    "....//....//etc/passwd", "...", "$HOME/.aws/credentials", "${HOME}/x", "~/x", "~root/x", "//etc/passwd",
    "/proc/self/environ", "/proc/1/cwd/x", "/dev/tcp/127.0.0.1/6379", "file:///etc/passwd", "http://127.0.0.1/",
    "src/a.py\0.txt", "\ud800", "x" * 300, "y/" * 3000,
]  # fmt: skip
LITERAL = [
    "%2e%2e%2fetc%2fpasswd",
    "..\\..\\etc\\passwd",
    "\uff0e\uff0e/\uff0e\uff0e/etc/passwd",
    "\u2024\u2024/x",
]


@pytest.fixture(params=["openat2", "walk"])
def jail(request: pytest.FixtureRequest, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Jail:
    if request.param == "walk":
        monkeypatch.setattr(beneath, "available", lambda: False)
    elif not beneath.available():
        pytest.skip("this kernel has no openat2, or a filter forbids it")
    return Jail(workspace, writable=True, locks=workspace.parent / "locks")


def refused(call: Callable[[], object], root: Path) -> str:
    with pytest.raises(ToolError) as caught:
        call()
    told = str(caught.value)
    assert str(root) not in told and str(root.parent) not in told
    assert caught.value.why
    return told


@pytest.mark.parametrize("path", HOSTILE)
def test_a_hostile_path_is_refused_by_every_method_without_telling_where_the_workspace_lies(
    jail: Jail, path: str, outside: Path
) -> None:
    before = sorted(outside.parent.rglob("*"))
    for call in (jail.read, jail.list, jail.stat, jail.remove, lambda p: jail.write(p, b"x")):
        refused(lambda call=call: call(path), jail.root)  # type: ignore[misc]
    assert sorted(outside.parent.rglob("*")) == before
    assert outside.read_text() == "CANARY"


@pytest.mark.parametrize("path", LITERAL)
def test_encoded_and_lookalike_dots_are_literal_names_inside(jail: Jail, path: str, outside: Path) -> None:
    jail.write(path, b"mine")
    assert jail.read(path) == b"mine"
    made = [file for file in outside.parent.rglob("*") if file.is_file() and file.read_bytes() == b"mine"]
    assert len(made) == 1 and made[0].is_relative_to(jail.root)


@pytest.mark.parametrize(
    "links",
    [
        {"l": "../outside.txt"},
        {"l": "/etc/passwd"},
        {"d": "/", "l": "d/etc/passwd"},
        {"a": "b", "b": "..", "l": "a/outside.txt"},
        {"l": "/proc/self/root/etc/passwd"},
        {"l": "l"},
        {"src/up": "../..", "l": "src/up/outside.txt"},
    ],
)
def test_no_symbolic_link_leads_out(jail: Jail, links: dict[str, str], outside: Path) -> None:
    for name, target in links.items():
        (jail.root / name).symlink_to(target)
    refused(lambda: jail.read("l"), jail.root)
    refused(lambda: jail.write("l", b"x"), jail.root)
    folder = next(iter(links))
    refused(lambda: jail.write(f"{folder}/new", b"x"), jail.root)
    assert outside.read_text() == "CANARY" and not (outside.parent / "new").exists()


def test_a_link_that_stays_inside_is_read_but_never_written_through(jail: Jail) -> None:
    (jail.root / "link").symlink_to("src/a.py")
    if beneath.available():
        assert jail.read("link") == b"a = 1\n"
    refused(lambda: jail.write("link", b"x"), jail.root)
    assert (jail.root / "src" / "a.py").read_text() == "a = 1\n"
    jail.remove("link")
    assert (jail.root / "src" / "a.py").exists()


def test_a_file_with_a_second_name_is_not_written(jail: Jail, outside: Path) -> None:
    os.link(outside, jail.root / "hard")
    assert "hard link" in refused(lambda: jail.write("hard", b"x"), jail.root)
    assert outside.read_text() == "CANARY"


def test_special_files_are_refused_at_once(jail: Jail) -> None:
    os.mkfifo(jail.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        previous = Path.cwd()
        os.chdir(jail.root)  # the path of a socket must be short
        try:
            server.bind("socket")
        finally:
            os.chdir(previous)
    for name in ("pipe", "socket"):
        refused(lambda name=name: jail.read(name), jail.root)  # type: ignore[misc]
        refused(lambda name=name: jail.write(name, b"x"), jail.root)  # type: ignore[misc]
        assert jail.stat(name).kind == "special"


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".git", ".GIT/config", "sub/.git/config", "git~1/x"]
)
def test_nothing_in_gits_own_folder_is_written(jail: Jail, path: str) -> None:
    assert ".git" in refused(lambda: jail.write(path, b"#!/bin/sh"), jail.root)
    (jail.root / "alias").symlink_to(".git")
    (jail.root / ".git").mkdir(exist_ok=True)
    refused(lambda: jail.write("alias/config", b"x"), jail.root)


def test_writing_is_all_or_nothing_keeps_the_mode_and_makes_folders(jail: Jail) -> None:
    jail.write("new/deep/run.sh", b"#!/bin/sh\n")
    (jail.root / "new/deep/run.sh").chmod(0o755)
    jail.write("new/deep/run.sh", b"#!/bin/bash\n")
    assert jail.stat("new/deep/run.sh").mode == 0o755
    assert [entry.name for entry in jail.list("new/deep")] == ["run.sh"]
    refused(lambda: jail.write("new/deep", b"x"), jail.root)
    refused(lambda: jail.write("new/deep/run.sh/x", b"x"), jail.root)


def test_a_jail_for_reading_changes_nothing(workspace: Path) -> None:
    jail = Jail(workspace)
    refused(lambda: jail.write("src/a.py", b"x"), workspace)
    refused(lambda: jail.remove("src/a.py"), workspace)
    assert jail.read("src/a.py") == b"a = 1\n"


def test_what_is_too_large_is_refused_without_reading_all_of_it(jail: Jail) -> None:
    with (jail.root / "big").open("wb") as file:
        file.truncate(1 << 40)
    assert "too large" in refused(lambda: jail.read("big"), jail.root)
    assert jail.read("src/a.py", limit_bytes=6) == b"a = 1\n"
    refused(lambda: jail.read("src/a.py", limit_bytes=5), jail.root)
    refused(lambda: jail.write("big", bytes(11 * 1024 * 1024)), jail.root)


def test_listing_shows_kinds_and_does_not_follow_links(jail: Jail) -> None:
    (jail.root / "out").symlink_to("/etc")
    (jail.root / os.fsdecode(b"bad\xff")).write_bytes(b"12")
    found = {entry.name: (entry.kind, entry.size) for entry in jail.list()}
    assert found == {"src": ("dir", 0), "out": ("link", 0), "bad\\xff": ("file", 2)}
    assert jail.exists("src/a.py") and not jail.exists("src/b.py") and not jail.exists("src/a.py/x")


@pytest.fixture
def swapping(workspace: Path, outside: Path) -> Iterator[None]:
    """Somebody swaps `door` between a folder inside and a link to the outside, as fast as it goes."""
    (workspace / "inside").mkdir()
    (workspace / "inside" / "outside.txt").write_text("inside")
    (workspace / "trap").symlink_to("..")
    (workspace / "door").symlink_to("inside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for target in ("..", "inside"):
                (workspace / "next").symlink_to(target)
                (workspace / "next").rename(workspace / "door")

    thread = threading.Thread(target=swap)
    thread.start()
    yield
    stop.set()
    thread.join(10)


@pytest.mark.usefixtures("swapping")
def test_a_link_swapped_during_thousands_of_reads_and_writes_never_leads_out(
    workspace: Path, outside: Path
) -> None:
    jail = Jail(workspace, writable=True)
    read = refusals = 0
    for number in range(4000):
        try:
            assert jail.read("door/outside.txt") == b"inside"
            read += 1
        except ToolError:
            refusals += 1
        if number % 4 == 0:
            with pytest.raises(ToolError):
                jail.write("door/outside.txt", b"changed")
    assert outside.read_text() == "CANARY"
    assert refusals and (read or not beneath.available())


async def test_one_file_has_one_lock_among_tasks_and_another_file_its_own(jail: Jail) -> None:
    async with jail.lock("src/a.py"):
        with pytest.raises(ToolError, match="somebody else"):
            async with jail.lock("src/../src/a.py", seconds=0.1):
                pytest.fail("two had the lock")
        async with jail.lock("src/b.py", seconds=0.1):
            pass
    async with jail.lock("src/a.py", seconds=0.1):
        pass
    assert not list((jail.root.parent / "locks").iterdir())


def test_a_lock_on_a_file_that_its_last_holder_removed_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lock"

    def removed_meanwhile(_fd: int, _how: int) -> None:
        file.unlink()
        file.touch()

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", removed_meanwhile)
        assert lock.attempt(file) is None
    fd = lock.attempt(file)
    assert fd is not None and lock.attempt(file) is None
    os.close(fd)


async def test_counting_in_a_file_under_its_lock_loses_nothing(jail: Jail) -> None:
    jail.write("n", b"0")

    async def count() -> None:
        async with jail.lock("n"):
            number = int(jail.read("n"))
            await asyncio.sleep(0)
            jail.write("n", str(number + 1).encode())

    await asyncio.wait_for(asyncio.gather(*(count() for _ in range(20))), 30)
    assert jail.read("n") == b"20"


async def test_the_lock_holds_against_another_process(jail: Jail) -> None:
    program = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom shared.guard.files.jail import Jail\n"
        "async def main():\n"
        "    async with Jail(Path(sys.argv[1]), True, Path(sys.argv[2])).lock('n'):\n"
        "        print('held', flush=True); sys.stdin.read()\n"
        "asyncio.run(main())\n"
    )
    argv = [sys.executable, "-c", program, str(jail.root), str(jail.root.parent / "locks")]
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)
    try:
        assert other.stdin and other.stdout
        assert await asyncio.wait_for(other.stdout.readline(), 20) == b"held\n"
        with pytest.raises(ToolError):
            async with jail.lock("n", seconds=0.2):
                pytest.fail("two had the lock")
        other.kill()  # a lock ends with its process, however that ends
        async with jail.lock("n", seconds=20):
            pass
    finally:
        await asyncio.wait_for(other.communicate(), 20)
