"""Folders of root shown to the sandbox's user: what commands write there belongs to whom the folder belongs to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shared import failpoints
from shared.errors import ToolError
from shared.guard.processes.limits import PROCESSES
from shared.guard.sandbox import idmap
from shared.guard.sandbox.idmap import Mapped, _exchanged
from shared.guard.sandbox.sandbox import Sandbox
from tests.guard.conftest import sandbox
from tests.support.person import ROOT

ANNS = 41_234  # somebody's id


@pytest.fixture(params=[True, False], ids=["their namespace", "namespaces of root"])
def confined(request: pytest.FixtureRequest) -> Sandbox:
    """Both ways: the user makes the namespaces, or, where that is not allowed, root does and is given up then."""
    if os.getuid():
        pytest.skip("only root shows its folders to another user")
    found = sandbox("bwrap")
    assert found.mapped
    return replace(found, namespace=request.param)


def shell(confined: Sandbox, root: Path, command: str) -> subprocess.CompletedProcess[str]:
    argv = confined.wrap(["bash", "-c", command], root, True)
    return subprocess.run(argv, cwd="/", capture_output=True, text=True, timeout=30)


def owners(folder: Path) -> set[tuple[int, int]]:
    return {(path.lstat().st_uid, path.lstat().st_gid) for path in (folder, *folder.rglob("*"))}


@pytest.mark.parametrize("owner", [0, ANNS])
def test_what_a_command_writes_belongs_to_the_folders_owner(
    confined: Sandbox, workspace: Path, owner: int
) -> None:
    for path in (workspace, *workspace.rglob("*")):
        os.chown(path, owner, owner)
    workspace.parent.chmod(0o700)
    done = shell(
        confined, workspace,
        "mkdir -p d/e && echo x > d/e/f && ln -s f d/e/l && chmod 700 src && mv src/a.py d && rmdir src && "
        "touch -d yesterday d/a.py",
    )  # fmt: skip
    assert not done.returncode, done.stderr
    assert owners(workspace) == {(owner, owner)} and (workspace / "d" / "a.py").exists()


def test_git_takes_the_folder_for_its_own(confined: Sandbox, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    done = shell(confined, workspace, "git status --short && git ls-files -o")
    assert not done.returncode and "src/" in done.stdout, done.stderr


def test_files_of_others_in_it_are_not_the_commands(confined: Sandbox, workspace: Path) -> None:
    file = workspace / "src" / "a.py"
    os.chown(file, ANNS, ANNS)
    done = shell(confined, workspace, "cat src/a.py; echo harm > src/a.py; chmod 777 src/a.py")
    assert done.stdout == "a = 1\n" and file.read_text() == "a = 1\n" and file.stat().st_uid == ANNS


def test_a_folder_that_was_made_anew_is_shown_anew(confined: Sandbox, workspace: Path) -> None:
    shell(confined, workspace, "echo old > f")
    shutil.rmtree(workspace)
    workspace.mkdir()
    (workspace / "g").write_text("new\n")
    assert shell(confined, workspace, "cat *").stdout == "new\n"


def test_a_command_has_no_right_of_root(confined: Sandbox, workspace: Path) -> None:
    done = shell(
        confined, workspace,
        "grep -E '^(Cap|Groups)' /proc/self/status; id -u; unshare -Ur id; echo harm > /proc/sys/vm/swappiness; "
        "kill -9 1; cat /proc/1/environ; echo harm >> /usr/x; touch /dev/shm/a /tmp/b && ulimit -u",
    )  # fmt: skip
    lines = done.stdout.split("\n")
    assert [line.split()[1:] for line in lines[:6]] == [[], *[["0" * 16]] * 5]
    assert lines[6] in ("1000", str(idmap.user())) and lines[7:] == [str(PROCESSES), ""]


def test_the_machine_sees_none_of_these_mounts(confined: Sandbox, workspace: Path) -> None:
    shell(confined, workspace, "true")
    assert "idmapped" not in Path("/proc/self/mountinfo").read_text()


def test_what_cannot_be_shown_is_refused_and_said(confined: Sandbox) -> None:
    with pytest.raises(ToolError, match="cannot be shown to another user") as told:
        confined.wrap(["true"], Path("/proc/sys/kernel"), True)
    assert "ordinary user" in told.value.fix


def test_mounts_that_nobody_used_for_long_go(
    confined: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idmap, "_MOST", 3)
    place = Mapped()
    folders = [tmp_path / str(number) for number in range(6)]
    for folder in folders:
        folder.mkdir()
    first = [place.sources([folder])[str(folder)] for folder in folders]
    assert len(set(first)) == 6 and len(place._shown) == 3
    assert place.sources([folders[-1]]) == {str(folders[-1]): first[-1]}
    assert place.sources([folders[0]])[str(folders[0])] not in first


def test_where_the_kernel_cannot_commands_of_root_are_refused_and_told_why(
    confined: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> Mapped:
        raise OSError(0, "the kernel gives no user namespaces")

    monkeypatch.setattr(idmap, "place", fails)
    found = Sandbox.probe()
    assert found.mode == "refused"
    assert "as root" in found.why and "no user namespaces" in found.why and "ordinary" in found.why


_PROBED = """
import json, sys
from pathlib import Path
from shared.guard.sandbox.sandbox import Sandbox
from shared.settings import Settings
from shared.client.doctor.machine import sandbox
box, told = Sandbox.probe("auto", [sys.argv[1]]), sandbox(Settings(PROMPTDOCK_HOME=Path(sys.argv[1])))
print(json.dumps([box.mode, box.why, told.level, told.told, told.fix]))
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Callable[[str], list[str]]:
    """What the sandbox and doctor say of a data folder on another file system; mounted for this alone."""
    if os.getuid():
        pytest.skip("only root shows its folders to another user")
    assert sandbox("bwrap").mapped

    def probed(kind: str) -> list[str]:
        folder = tmp_path / kind
        folder.mkdir()
        mounted = f'mount -t {kind} none "$0" && exec "$@"'
        argv = ["unshare", "-m", "sh", "-c", mounted, str(folder), sys.executable, "-c", _PROBED]
        done = subprocess.run(
            [*argv, str(folder / "home")], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert not done.returncode, done.stderr
        told: list[str] = json.loads(done.stdout)
        return told

    return probed


def test_a_data_folder_on_a_file_system_that_cannot_be_shown_is_found_before_any_command_is_run(
    elsewhere: Callable[[str], list[str]],
) -> None:
    assert elsewhere("tmpfs")[0] == "bwrap"
    mode, why, level, told, fix = elsewhere("ramfs")
    assert (mode, level) == ("refused", "warn")
    assert (
        "its file system has no idmapped mounts" in why and "its file system has no idmapped mounts" in told
    )
    assert "ordinary user" in fix and "ext4" in fix and "PROMPTDOCK_HOME" in fix


def test_a_kernel_without_idmapped_mounts_refuses_commands_and_says_what_to_do(
    confined: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMPTDOCK_WITHOUT", "idmapped-mounts")
    failpoints.read()
    found = Sandbox.probe()
    assert found.mode == "refused" and "Linux 5.12" in found.why and "ordinary user" in found.why
    for refused in (found, confined):  # also where it was found to work, and the folder was never shown
        with pytest.raises(ToolError, match="cannot be run here") as told:
            refused.wrap(["true"], workspace, True)
        assert "idmapped" in told.value.why


@pytest.mark.parametrize(("one", "other"), [(0, 65_520), (65_520, 0), (1, 65_520), (65_520, 65_520), (7, 8)])
def test_two_ids_are_exchanged_and_all_others_are_themselves(one: int, other: int) -> None:
    rows = [tuple(map(int, line.split())) for line in _exchanged(one, other).splitlines()]
    assert sum(count for _, _, count in rows) == 2**32 - 1

    def shown(number: int) -> int:
        ((there, here, _),) = [row for row in rows if row[0] <= number < row[0] + row[2]]
        return here + number - there

    assert shown(one) == other and shown(other) == one
    assert all(shown(number) == number for number in (2, 1000, 65_534, 2**32 - 2))
