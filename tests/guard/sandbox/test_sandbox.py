"""The sandbox: commands reach their workspace and nothing else, whatever shell they are written in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shared import failpoints
from shared.errors import ToolError
from shared.guard.processes import limits
from shared.guard.processes.limits import PROCESSES
from shared.guard.processes.process import Finished, run
from shared.guard.sandbox import bubblewrap, cgroup, landlock
from shared.guard.sandbox import sandbox as module
from shared.guard.sandbox.sandbox import Sandbox
from tests.guard.conftest import sandbox, until

ATTACKS = [
    "git status; touch CANARY", "git status && touch CANARY", "true |& touch CANARY", "true\ntouch CANARY",
    "git log $(touch CANARY)", "true > >(touch CANARY; cat >/dev/null); sleep .1", "git status &> CANARY",
    "git log -$((a[$(touch CANARY)0]))", "cat <<< $(touch CANARY)", "true;{touch,CANARY}",
    "true;touch$IFS'CANARY'",
    "true;$'\\x74ouch' CANARY", "true;t''ouch CANARY", "a=to;b=uch;$a$b CANARY", "/usr/bin/touc? CANARY",
    "eval 'touch CANARY'", "git init -q r; git -C r log -1 --output=CANARY; echo > CANARY",
    "find . -maxdepth 0 -fprint CANARY",
    "sort -o CANARY /dev/null", "awk 'BEGIN{system(\"touch CANARY\")}'",
    "timeout 5 touch CANARY", "nice touch CANARY", "(exec -a git touch CANARY)", "bash -c 'touch CANARY'",
    "echo 'touch CANARY' > p.sh; BASH_ENV=./p.sh bash -c :", "test -v 'a[$(touch CANARY)]'",
    "set -H; true; touch CANARY", "{ touch CANARY; }", "echo x > f; mapfile -C 'touch CANARY;:' -c 1 a < f",
    "ln -s $(dirname CANARY) out; touch out/canary", "ln CANARY.txt here; echo changed > here",
    "mkdir -p d; mount --bind / d; touch CANARY", "unshare -Urm sh -c 'umount -l /; touch CANARY'",
    "chroot / touch CANARY", "mknod disk b 8 0 && head -c1 disk",
    "cp /bin/sh s; chmod u+s s; ./s -c 'touch CANARY'",
    "python3 -c \"open('CANARY','w')\"",
    "nohup setsid touch CANARY; sleep .1", "chmod 777 CANARY.txt",
    "rm -rf $(dirname CANARY)/outside.txt", "mv CANARY.txt .", "truncate -s0 CANARY.txt",
]  # fmt: skip


async def shell(
    confined: Sandbox, root: Path, command: str, timeout: float = 30, writable: bool = True
) -> Finished:
    return await run(confined.wrap(["bash", "-c", command], root, writable), cwd=root, timeout=timeout)


def seen(outside: Path) -> tuple[list[str], str, int]:
    names = sorted(path.name for path in outside.parent.iterdir())
    return names, outside.read_text(), outside.stat().st_nlink


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_command_changes_anything_outside_of_the_workspace(
    confined: Sandbox, workspace: Path, outside: Path, attack: str
) -> None:
    text = attack.replace("CANARY.txt", str(outside)).replace("CANARY", str(outside.parent / "canary"))
    before, mode = seen(outside), os.stat(outside).st_mode  # noqa: PTH116
    await shell(confined, workspace, text)
    assert seen(outside) == before
    # Landlock, as the documentation says, does not know about modes.
    assert os.stat(outside).st_mode == mode or confined.mode == "landlock"  # noqa: PTH116


async def test_in_the_workspace_ordinary_work_works(confined: Sandbox, workspace: Path) -> None:
    done = await shell(
        confined, workspace, "pwd && echo hi > src/new.txt && mkdir -p b/c && cat < <(cat src/new.txt) && "
        "mktemp > /dev/null && python3 -c 'print(6*7)' && echo $HOME && git --version > /dev/null",
    )  # fmt: skip
    assert done.ok, done.stderr
    assert done.stdout.split()[:3] == [str(workspace), "hi", "42"]
    assert (workspace / "src" / "new.txt").read_text() == "hi\n"


async def test_a_workspace_for_reading_is_not_changed(confined: Sandbox, workspace: Path) -> None:
    done = await shell(confined, workspace, "cat src/a.py; echo x > src/a.py; touch new", writable=False)
    assert done.stdout == "a = 1\n"
    assert (workspace / "src" / "a.py").read_text() == "a = 1\n" and not (workspace / "new").exists()


@pytest.mark.parametrize(
    "command",
    [
        "cat OUTSIDE", "env", "cat /proc/$PPID/environ | tr '\\0' '\\n'", "cat /proc/PARENT/environ",
        "for p in /proc/[0-9]*; do cat $p/environ; cat $p/root/etc/shadow; cat $p/cwd/*; done",
        "cat /etc/shadow", "cat /root/.* ~root/.*", "ls -R /root /home", "cat /proc/1/root/OUTSIDE",
        "cat /var/log/*",
    ],
)  # fmt: skip
async def test_secrets_of_the_machine_and_the_cluster_are_not_readable(
    confined: Sandbox, workspace: Path, outside: Path, command: str
) -> None:
    assert os.environ["ANTHROPIC_API_KEY"] == "sk-ant-CANARY"
    text = command.replace("OUTSIDE", str(outside)).replace("PARENT", str(os.getpid()))
    done = await shell(confined, workspace, text)
    assert "CANARY" not in done.stdout + done.stderr
    assert not any(word in done.stdout for word in ("root:x", "root:*", ".ssh"))


async def test_what_the_starting_process_has_in_its_environment_stays_there(
    confined: Sandbox, workspace: Path
) -> None:
    argv = confined.wrap(["env"], workspace, True)
    done = await run(argv, cwd=workspace, env={"PATH": os.environ["PATH"], "TOKEN": "CANARY"})
    assert done.ok and "CANARY" not in done.stdout


async def test_a_command_has_no_capability_even_where_we_are_root(confined: Sandbox, workspace: Path) -> None:
    done = await shell(confined, workspace, "grep CapEff /proc/self/status; mknod d b 7 0; mknod c c 1 3")
    assert done.stdout.split() == ["CapEff:", "0" * 16]
    assert os.listdir(workspace) == ["src"]  # noqa: PTH208


async def test_no_port_of_this_machine_is_reached_without_a_network_grant(
    confined: Sandbox, workspace: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        call = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
        assert not (await shell(confined, workspace, call)).ok
        with pytest.raises(TimeoutError):
            server.accept()
        granted = confined.wrap(["bash", "-c", call], workspace, True, network=True)
        assert (await run(granted, cwd=workspace)).ok
        server.accept()[0].close()


async def test_bubblewrap_reaches_no_network_at_all(workspace: Path) -> None:
    confined = sandbox("bwrap")
    assert confined.offline
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.2)
        await shell(confined, workspace, f"echo x > /dev/udp/127.0.0.1/{server.getsockname()[1]}")
        with pytest.raises(TimeoutError):
            server.recv(1)
    names = (await shell(confined, workspace, "tail -n +3 /proc/net/dev | cut -d: -f1")).stdout.split()
    assert names == ["lo"]


async def test_no_process_outside_is_signalled(confined: Sandbox, workspace: Path) -> None:
    if confined.mode == "landlock" and landlock.version() < 6:
        pytest.skip("Landlock keeps signals in from ABI 6 on")
    other = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        await shell(confined, workspace, f"kill -9 {other.pid}")
        assert other.returncode is None
        os.kill(other.pid, 0)
    finally:
        other.kill()
        await other.wait()


async def test_gits_own_folder_is_read_only_to_commands(workspace: Path) -> None:
    confined = sandbox("bwrap")
    await run(["git", "init", "-q", str(workspace)], cwd=workspace)
    done = await shell(
        confined, workspace,
        "git status --short; echo '[core] fsmonitor = x' >> .git/config; echo x > .git/hooks/pre-commit; "
        "mv .git g; rm -rf .git; ls .git/HEAD",
    )  # fmt: skip
    assert "?? src/" in done.stdout and ".git/HEAD" in done.stdout
    assert "fsmonitor" not in (workspace / ".git" / "config").read_text()


async def test_a_dot_git_file_cannot_make_another_folder_readable(
    confined: Sandbox, workspace: Path, outside: Path
) -> None:
    (workspace / ".git").write_text(f"gitdir: {outside.parent}\n")
    done = await shell(confined, workspace, f"cat {outside}; ls {outside.parent}")
    assert "CANARY" not in done.stdout and "outside" not in done.stdout


@pytest.fixture
def bounded(confined: Sandbox) -> Iterator[tuple[Sandbox, int]]:
    """A sandbox, and how many processes it lets a command have."""
    if os.getuid():
        yield confined, PROCESSES
        return
    # A group of this test alone, since others on this machine may be using ours.
    own = cgroup.group(64, name=f"promptdock-test-{os.getpid()}")
    if not own.processes:
        pytest.skip("as root without a control group the number of processes is not bounded")
    yield replace(confined, group=own), 64
    deserted = time.monotonic() + 30
    for folder in own.folders:
        # Who is killed leaves the group later than the command that it belonged to ends.
        while (folder / "cgroup.procs").read_text():
            assert time.monotonic() < deserted, "processes of the test go on"
            time.sleep(0.01)
        folder.rmdir()


async def test_a_fork_bomb_is_bounded_and_ends_with_its_command(
    bounded: tuple[Sandbox, int], workspace: Path
) -> None:
    confined, most = bounded
    # Each child writes a line and waits, so that the lines tell how far a bomb would get.
    bomb = f"for i in $(seq {most + 100}); do (echo $i >> n; exec sleep 60) & done 2>/dev/null; sleep 60"
    done = await shell(confined, workspace, bomb, timeout=4)
    assert done.timed_out or not done.ok
    # The limit per user is set on top of what runs meanwhile, so that it is not exact.
    assert 0 < len((workspace / "n").read_text().splitlines()) <= most + 30
    await until(lambda: not working_in(workspace))


def working_in(folder: Path) -> list[str]:
    """Processes whose current folder this is."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if link.readlink() == folder:
                found.append(link.parent.name)
    return found


async def test_files_and_core_dumps_are_bounded(confined: Sandbox, workspace: Path) -> None:
    done = await shell(confined, workspace, "truncate -s 100G big; stat -c %s big; ulimit -c")
    assert "0" in done.stdout.split() and not (workspace / "big").stat().st_size > limits.FILE_BYTES


@pytest.mark.parametrize("setting", ["auto", "bwrap", "landlock"])
@pytest.mark.parametrize("abi", [0, 2])
async def test_where_nothing_confines_commands_are_refused_and_told_why(
    setting: str, abi: int, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "programs", list)
    monkeypatch.setattr(landlock, "version", lambda: abi)
    found = Sandbox.probe(setting)
    assert found.mode == "refused" and not found.confines and "SANDBOX=none" in found.explain()
    with pytest.raises(ToolError, match="cannot be run here"):
        found.wrap(["true"], workspace, True)


def test_a_sandbox_that_runs_but_does_not_confine_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do [ "$1" = --chdir ] && cd "$2"; shift; done; shift; exec "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setattr(module, "programs", lambda: [str(fake)])
    monkeypatch.setattr(bubblewrap, "INSIDE", 'exec "$@"')
    monkeypatch.setenv("PROMPTDOCK_WITHOUT", "root-user")
    failpoints.read()
    found = Sandbox.probe("bwrap")
    assert found.mode == "refused" and "did not confine" in found.why


async def test_none_is_taken_only_when_it_is_said_and_still_passes_no_secret(workspace: Path) -> None:
    found = Sandbox.probe("none")
    assert found.mode == "none" and not found.confines and not found.offline
    done = await shell(found, workspace, "env; pwd")
    assert "CANARY" not in done.stdout and done.stdout.endswith(f"{workspace}\n")
    assert Sandbox.probe("auto").mode != "none"
    assert Sandbox.probe("nonsense").mode == "refused"


def test_one_line_says_what_confines_here(confined: Sandbox) -> None:
    assert "\n" not in confined.explain() and "processes" in confined.explain()


async def test_that_line_names_the_user_that_commands_are_told_to_be(
    confined: Sandbox, workspace: Path
) -> None:
    if not confined.mapped:
        pytest.skip("commands are the worker's own user here")
    done = await shell(confined, workspace, "id -u")
    told = done.stdout.strip()
    assert told == str(confined.mapped.user) or f"which is {told} to themselves" in confined.explain()


def test_landlock_grants_no_folder_that_our_data_lies_in(workspace: Path) -> None:
    confined = sandbox("landlock")
    plan = next(
        word for word in replace(confined, hidden=("/opt/pd",)).wrap(["true"], workspace, True) if "{" in word
    )
    assert "/opt" not in json.loads(plan)["read"]
    with pytest.raises(ToolError, match="data folder"):
        replace(confined, hidden=("/usr/pd",)).wrap(["true"], workspace, True)


def test_landlock_runs_nothing_where_it_cannot_confine(tmp_path: Path) -> None:
    plan = {"start": str(tmp_path / "missing"), "confine": True, "network": False, "read": [], "write": [],
            "scratch": str(tmp_path), "fresh": False, "tend": False, "filter": "", "processes": 10,
            "limits": {}}  # fmt: skip
    assert landlock.main([json.dumps(plan), "touch", str(tmp_path / "ran")]) == 125
    assert not (tmp_path / "ran").exists()


def test_who_cannot_enter_the_control_group_runs_nothing(tmp_path: Path) -> None:
    confined = replace(Sandbox.probe("none"), group=cgroup.Group((tmp_path / "missing",)))
    argv = confined.wrap(["touch", str(tmp_path / "ran")], tmp_path, True)
    assert subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 125
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("door", "said"), [("tasks", "0"), ("cgroup.procs", "the shell's own number")])
def test_a_group_of_version_1_is_entered_by_the_thread_alone_which_waits_for_nobody(
    tmp_path: Path, door: str, said: str
) -> None:
    for name in {door, "cgroup.procs"}:
        (tmp_path / name).touch()
    argv = replace(Sandbox.probe("none"), group=cgroup.Group((tmp_path,))).wrap(["true"], tmp_path, True)
    with subprocess.Popen(argv) as running:
        pass
    assert running.returncode == 0
    wanted = str(running.pid) if said != "0" else said
    assert (tmp_path / door).read_text().strip() == wanted
