"""The sandbox: what a command that means harm can do to the machine, to its person, and to the next command."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.guard.processes import limits
from shared.guard.processes.process import Finished, run
from shared.guard.processes.reserve import Reserve
from shared.guard.sandbox import bubblewrap, cgroup
from shared.guard.sandbox.sandbox import Sandbox, scratch
from tests.attacks.ground import CANARY, whole
from tests.guard.conftest import sandbox, until
from tests.guard.sandbox.test_sandbox import working_in
from tests.support import person
from tests.support.guards import guarded

MODES = pytest.mark.parametrize("mode", ["bwrap", "landlock"])
WITHOUT_NAMESPACES = pytest.mark.parametrize("mode", ["landlock", "none"])


def box(mode: str) -> Sandbox:
    return Sandbox.probe("none") if mode == "none" else sandbox(mode)


async def shell(confined: Sandbox, root: Path, command: str, timeout: float = 30) -> Finished:
    argv = confined.wrap(["bash", "-c", command], root, True)
    return await run(argv, cwd=root, timeout=timeout, reserve=Reserve.of(root))


# -- the machine -----------------------------------------------------------------------------------------------


@guarded("root-user")
@pytest.mark.parametrize("namespace", [True, False])
async def test_a_command_is_not_root_for_the_kernel(namespace: bool, workspace: Path) -> None:
    if os.getuid():
        pytest.skip("only root has something to give up")
    mark = f"7{secrets.randbelow(10**6):06}"
    argv = replace(sandbox("bwrap"), namespace=namespace).wrap(["sleep", mark], workspace, True)
    running = await asyncio.create_subprocess_exec(*argv)
    try:
        await until(lambda: bool(_users(mark)))
        assert 0 not in _users(mark)
    finally:
        running.kill()
        await running.wait()


def _users(mark: str) -> set[int]:
    """Who runs the `sleep` with this number of seconds, as seen from outside."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cmdline").read_bytes() == f"sleep\0{mark}\0".encode():
                found.add(process.stat().st_uid)
    return found


@guarded("root-user")
async def test_landlock_does_not_run_commands_of_root(workspace: Path) -> None:
    if os.getuid():
        pytest.skip("only root is refused")
    assert Sandbox.probe("landlock").mode == "refused"


@guarded("proc-sys")
async def test_no_setting_of_the_kernel_is_written(workspace: Path) -> None:
    """Each gets the value that it has; as the user whom the kernel would let."""
    confined = replace(sandbox("bwrap"), mapped=None)
    await shell(
        confined, workspace,
        "for s in vm/overcommit_memory kernel/pid_max; do v=$(cat /proc/sys/$s); echo $v > /proc/sys/$s && "
        "echo $s >> written; done; cp /proc/self/mountinfo .",
    )  # fmt: skip
    mounts = (workspace / "mountinfo").read_text()
    assert not (workspace / "written").exists() and " /sys /proc/sys ro," in mounts


def as_owner(folder: Path) -> list[str]:
    """Files that run as who owns them."""
    modes = {file.name: file.stat().st_mode for file in folder.iterdir()}
    return [
        name for name, mode in modes.items() if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID)
    ]


@guarded("seccomp")
@MODES
async def test_no_file_is_left_that_runs_as_its_owner(mode: str, workspace: Path) -> None:
    """Where the workers are root its owner would be root."""
    await shell(
        sandbox(mode), workspace,
        "cp /bin/sh s; chmod u+s s; chmod 4755 s; "
        "python3 -c 'import os; os.open(\"t\", os.O_CREAT | os.O_WRONLY, 0o4755)'",
    )  # fmt: skip
    assert not as_owner(workspace)


@guarded("seccomp")
@MODES
async def test_parts_of_the_kernel_that_few_need_are_closed(mode: str, workspace: Path) -> None:
    call = "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15); print('open')"
    done = await shell(sandbox(mode), workspace, f'python3 -c "{call}"; unshare -Ur echo open')
    assert "open" not in done.stdout


# -- its files and its network -----------------------------------------------------------------------------------


@guarded("worktree-only")
@MODES
async def test_nothing_beside_the_worktree_is_changed(mode: str, workspace: Path, canary: Path) -> None:
    await shell(sandbox(mode), workspace, f"echo harm > {canary}; touch {canary.parent}/new")
    assert whole(canary) and not (canary.parent / "new").exists()


@guarded("git-read-only")
async def test_a_command_cannot_leave_a_hook_for_git(workspace: Path) -> None:
    await shell(sandbox("bwrap"), workspace, "echo 'touch harm' > .git/hooks/post-checkout")
    assert not (workspace / ".git" / "hooks" / "post-checkout").exists()


@guarded("no-network")
@MODES
async def test_no_port_of_this_machine_is_reached(mode: str, workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        await shell(sandbox(mode), workspace, f"echo harm > /dev/tcp/127.0.0.1/{port}")
        with pytest.raises(TimeoutError):
            _accepted(server)


def _accepted(server: socket.socket) -> None:
    server.accept()[0].close()
    raise AssertionError("it was reached")


SPEAK = "import socket; s = socket.socket({kind}); s.connect({address!r}); s.send(b'harm')"


@guarded("landlock-sockets")
async def test_under_landlock_no_server_is_reached_by_its_path(workspace: Path) -> None:
    """As Redis is with `REDIS_URL=unix://…`, and Docker always."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/s")
        server.listen()
        server.settimeout(0.2)
        call = SPEAK.format(kind="socket.AF_UNIX", address=f"{folder}/s")
        argv = sandbox("landlock").wrap(["python3", "-c", call], workspace, True)
        await run(argv, cwd=workspace)
        with pytest.raises(TimeoutError):
            _accepted(server)


@guarded("landlock-sockets")
async def test_under_landlock_nothing_leaves_by_udp(workspace: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.2)
        call = SPEAK.format(kind="socket.AF_INET, socket.SOCK_DGRAM", address=server.getsockname())
        await run(sandbox("landlock").wrap(["python3", "-c", call], workspace, True), cwd=workspace)
        got = b""
        with contextlib.suppress(TimeoutError):
            got = server.recv(10)
        assert got == b""


@guarded("home-hidden")
@MODES
async def test_the_data_folder_is_hidden_where_it_lies_in_the_checkout(mode: str, workspace: Path) -> None:
    home = workspace / ".promptdock"
    tree = home / "worktrees" / "x"
    tree.mkdir(parents=True)
    (home / "redis.json").write_text(CANARY)
    confined = replace(sandbox(mode), hidden=(str(home),))
    with contextlib.suppress(ToolError):  # Landlock cannot leave it out, and so refuses
        done = await shell(confined, workspace, "cat .promptdock/redis.json; echo x > .promptdock/redis.json")
        assert CANARY not in done.stdout
    assert (home / "redis.json").read_text() == CANARY
    # What is its own in there stays.
    done = await shell(confined, tree, f"echo work > done; cat {home}/redis.json")
    assert (tree / "done").read_text() == "work\n" and CANARY not in done.stdout


# -- what there is for everybody -----------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "SHM_BYTES", 1024**2)


@guarded("memory-bound")
@pytest.mark.usefixtures("small")
async def test_shared_memory_has_a_bound(workspace: Path) -> None:
    done = await shell(
        sandbox("bwrap"), workspace,
        "for f in /dev/shm/x /dev/x; do head -c 3M /dev/zero > $f; done 2>/dev/null; "
        "cat /dev/shm/x /dev/x 2>/dev/null | wc -c",
    )  # fmt: skip
    assert int(done.stdout) <= 1024**2


@guarded("memory-bound")
async def test_all_commands_together_have_a_bound_on_memory(workspace: Path) -> None:
    own = cgroup.group(memory=128 * 1024**2, name=f"promptdock-test-{os.getpid()}")
    try:
        if not own.memory and not os.environ.get("PROMPTDOCK_WITHOUT"):
            pytest.skip("this user has no control group with a bound on memory")
        confined = replace(sandbox("bwrap"), group=own)
        done = await shell(confined, workspace, "python3 -c \"print(len('x' * (300 << 20)))\"")
        assert str(300 << 20) not in done.stdout
    finally:
        for folder in own.folders:
            await until(lambda folder=folder: not (folder / "cgroup.procs").read_text())  # type: ignore[misc]
            folder.rmdir()


@guarded("process-bound")
async def test_a_command_makes_no_more_processes_than_it_may(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "PROCESSES", 40)
    confined = replace(sandbox("bwrap"), group=cgroup.Group())
    await shell(
        confined, workspace,
        "for i in $(seq 150); do (echo $i >> n; exec sleep 60) & done 2>/dev/null; sleep 60", timeout=4,
    )  # fmt: skip
    assert len((workspace / "n").read_text().split()) < 120


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder on a disk that nobody else uses meanwhile."""
    if not os.path.ismount("/dev/shm"):
        pytest.skip("there is no /dev/shm")
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield folder
    shutil.rmtree(folder)


@guarded("disk-bound")
@MODES
async def test_the_journal_keeps_its_reserve_of_the_disk(
    mode: str, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = os.statvfs(memory)
    monkeypatch.setattr(limits, "RESERVE_SHARE", 1.0)
    monkeypatch.setattr(limits, "RESERVE_FILES", 0)
    monkeypatch.setattr(limits, "RESERVE_BYTES", disk.f_bavail * disk.f_frsize - 16 * 1024**2)
    done = await shell(
        sandbox(mode), memory,
        "for i in $(seq 40); do head -c 1M /dev/zero > f$i; sleep .03; done; sleep 0.3; echo all written",
    )  # fmt: skip
    assert "all written" not in done.stdout and "left on the disk" in done.ended


@guarded("disk-bound")
async def test_on_a_full_disk_no_command_begins(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RESERVE_SHARE", 3.0)
    monkeypatch.setattr(limits, "RESERVE_BYTES", 1024**5)
    with contextlib.suppress(ToolError):
        await shell(sandbox("bwrap"), memory, "echo harm > f")
    assert not (memory / "f").exists()


# -- the next command ------------------------------------------------------------------------------------------------


@guarded("scratch")
async def test_nothing_is_planted_in_the_home_of_the_next_command(workspace: Path) -> None:
    confined = sandbox("landlock")
    first = await shell(confined, workspace, "echo harm > ~/.npmrc; echo harm > $TMPDIR/x; echo $HOME")
    second = await shell(confined, workspace, "cat ~/.npmrc $TMPDIR/x; ls -A ~")
    assert first.ok and "harm" not in second.stdout and not second.stdout.strip()
    assert first.stdout.strip() not in [str(file) for file in scratch().iterdir()]


LEAVES = "setsid nohup bash -c 'sleep 1.5; touch left' > /dev/null 2>&1 & "


@guarded("leftovers")
@WITHOUT_NAMESPACES
async def test_nothing_runs_on_when_its_command_has_ended(mode: str, workspace: Path) -> None:
    await shell(box(mode), workspace, LEAVES + "sleep 0.3")
    await until(lambda: not working_in(workspace))
    assert not (workspace / "left").exists()


@guarded("leftovers")
@WITHOUT_NAMESPACES
async def test_nothing_runs_on_when_its_command_took_too_long(mode: str, workspace: Path) -> None:
    done = await shell(box(mode), workspace, LEAVES + "sleep 60", timeout=0.9)
    assert done.timed_out
    await until(lambda: not working_in(workspace))
    assert not (workspace / "left").exists()


@guarded("leftovers")
@WITHOUT_NAMESPACES
async def test_nothing_runs_on_when_the_worker_is_killed(mode: str, workspace: Path) -> None:
    argv = box(mode).wrap(["bash", "-c", f"{LEAVES} sleep 4"], workspace, True)
    starts = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    worker = await asyncio.create_subprocess_exec(sys.executable, "-c", starts, *argv, cwd="/")
    await until(lambda: len(working_in(workspace)) > 1)
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    await until(lambda: not working_in(workspace))
    assert not (workspace / "left").exists()


# -- as an ordinary user ---------------------------------------------------------------------------------------------


@pytest.fixture
def theirs() -> Iterator[Path]:
    with person.workspace() as root:
        yield root


@guarded("proc-sys")
def test_an_ordinary_users_command_writes_no_setting_of_the_kernel(theirs: Path) -> None:
    told = person.confined("bwrap", theirs, "grep ' /sys /proc/sys ro,' /proc/self/mountinfo")
    assert told["code"] == 0


@guarded("worktree-only")
@MODES
def test_an_ordinary_users_command_changes_nothing_beside_the_worktree(mode: str, theirs: Path) -> None:
    told = person.confined(mode, theirs, "echo work > f; cat ../outside.txt; echo harm > ../outside.txt")
    assert (theirs / "f").read_text() == "work\n"
    assert "CANARY" not in told["stdout"] and (theirs.parent / "outside.txt").read_text() == "CANARY"


@guarded("seccomp")
@MODES
def test_an_ordinary_users_command_leaves_nothing_that_runs_as_them(mode: str, theirs: Path) -> None:
    person.confined(mode, theirs, "cp /bin/sh s; chmod 6755 s")
    assert not as_owner(theirs)


@guarded("leftovers")
async def test_an_ordinary_users_command_leaves_nothing_running(theirs: Path) -> None:
    await asyncio.to_thread(person.confined, "landlock", theirs, LEAVES + "sleep 0.3")
    await until(lambda: not working_in(theirs))
    assert not (theirs / "left").exists()


@guarded("process-bound")
def test_an_ordinary_users_command_makes_no_more_processes_than_it_may(theirs: Path) -> None:
    command = "for i in $(seq 700); do (echo $i >> n; exec sleep 30) & done 2>/dev/null"
    person.confined("landlock", theirs, command)
    assert len((theirs / "n").read_text().split()) < 600


@guarded("scratch")
def test_an_ordinary_users_command_plants_nothing_for_the_next(theirs: Path) -> None:
    person.confined("landlock", theirs, "echo harm > ~/.npmrc")
    assert person.confined("landlock", theirs, "cat ~/.npmrc")["code"] != 0
