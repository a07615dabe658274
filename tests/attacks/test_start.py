"""What lies in the folder where somebody stands is never run by a process of ours."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.guard.processes import running, starts
from shared.guard.processes.process import run
from tests.house.tree import ROOT, variables
from tests.support.guards import guarded
from tests.support.processes import until

MODULES = ("structlog", "hiredis", "agents", "shared")
PATIENCE = 60.0


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder somebody works in, with modules that tell when they are imported."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in MODULES:
        told = f"import pathlib; pathlib.Path({str(tmp_path)!r}, 'canary').touch()\nraise SystemExit(9)\n"
        (folder / f"{name}.py").write_text(told)
    return folder


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """What exists once something planted was run."""
    return tmp_path / "canary"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose cluster is ended."""
    folder = tmp_path / "home"
    yield folder
    promptdock(tmp_path, folder, "down")


def promptdock(where: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`promptdock words…`, as the installed command starts: without the current folder on its path."""
    kept = {name: value for name, value in os.environ.items() if name not in variables()}
    environment = {**kept, "PYTHONPATH": str(ROOT), "PROMPTDOCK_HOME": str(home)}
    words = (sys.executable, "-P", "-m", "gateways.cli", *words)
    return subprocess.run(
        words, cwd=where, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@guarded("safe-path")
def test_up_runs_nothing_that_lies_where_it_is_typed(planted: Path, home: Path, canary: Path) -> None:
    done = promptdock(planted, home, "up", "--detach", "--without", "planner", "--without", "frontend")
    assert not canary.exists()
    assert done.returncode == 0, done.stderr


@guarded("safe-path")
def test_chat_runs_nothing_that_lies_where_it_is_typed(planted: Path, tmp_path: Path, canary: Path) -> None:
    (planted / "gateways.py").write_text((planted / "agents.py").read_text())
    done = promptdock(planted, tmp_path / "home", "chat")
    assert not canary.exists()
    assert "no cluster runs here" in done.stderr


@guarded("safe-path")
def test_a_worker_that_is_started_by_hand_imports_no_library_from_there(
    planted: Path, tmp_path: Path, canary: Path
) -> None:
    (planted / "agents.py").unlink()  # `python -m agents…` itself would be that one: -P is for this
    kept = {name: value for name, value in os.environ.items() if name not in variables()}
    environment = {**kept, "PYTHONPATH": str(ROOT), "PROMPTDOCK_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "agents.chatter"], cwd=planted, env=environment, capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert not canary.exists()
    assert "no cluster runs here" in done.stdout + done.stderr


@guarded("safe-path")
async def test_programs_are_not_looked_for_where_somebody_stands(
    tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "git"
    fake.write_text(f"#!/bin/sh\ntouch {canary}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join((".", "", os.environ["PATH"])))
    monkeypatch.chdir(tmp_path)
    await run(["git", "--version"], cwd=tmp_path)
    await run([starts.program("git") or "git", "--version"], cwd=tmp_path)
    assert not await asyncio.to_thread(canary.exists)


def test_a_search_path_keeps_what_is_named_whole() -> None:
    given = {"PATH": "/usr/bin:.::bin:/bin", "PYTHONPATH": f":lib:{ROOT}:.", "OTHER": "x"}
    found = starts.surroundings(given)
    assert (found["PATH"], found["PYTHONPATH"], found["OTHER"]) == ("/usr/bin:/bin", str(ROOT), "x")


def test_a_running_worker_stands_in_no_folder_of_people(planted: Path, home: Path) -> None:
    done = promptdock(planted, home, "up", "--detach", "--without", "planner", "--without", "frontend")
    assert done.returncode == 0, done.stderr
    found = until(lambda: running.living(home), PATIENCE, "the note of what runs")
    for process in [process for process in found if process.name != running.REDIS]:
        where = Path(f"/proc/{process.pid}/cwd")
        assert not where.exists() or where.resolve() == Path(starts.WHERE)
