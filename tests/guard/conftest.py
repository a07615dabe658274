"""A workspace with a secret beside it, and the sandboxes that this machine has."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from shared import failpoints
from shared.guard.sandbox import landlock
from shared.guard.sandbox.bubblewrap import programs
from shared.guard.sandbox.sandbox import Sandbox


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file next to the workspace that nobody may read or change."""
    secret = tmp_path / "outside.txt"
    secret.write_text("CANARY")
    return secret


@pytest.fixture
def workspace(tmp_path: Path, outside: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a = 1\n")
    assert outside.exists()
    return root


def sandbox(mode: str) -> Sandbox:
    """The sandbox of that mode, or a skip that says why this machine has none.

    Whether it could have one is asked in another way, so that a sandbox of ours that broke fails here.
    """
    missing = (
        _no_bubblewrap()
        if mode == "bwrap"
        else ""
        if landlock.version() >= landlock.USABLE
        else "no usable Landlock here"
    )
    if missing:
        pytest.skip(missing)
    found = Sandbox.probe(mode) if mode == "bwrap" else landlocked()
    assert found.mode == mode, found.why
    return found


def landlocked() -> Sandbox:
    """Landlock, which root is refused: where the tests are root, it has to hold root as well as anybody else."""
    with pytest.MonkeyPatch.context() as patch:
        if os.getuid() == 0:
            patch.setenv("PROMPTDOCK_WITHOUT", "root-user")
        patch.setattr(failpoints, "_read", [])
        return Sandbox.probe("landlock")


def _no_bubblewrap() -> str:
    for program in programs():
        argv = [program, "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "true"]
        if subprocess.run(argv, capture_output=True, timeout=20, check=False).returncode == 0:
            return ""
    return "bubblewrap is not installed here, or namespaces are refused"


@pytest.fixture(params=["bwrap", "landlock"])
def confined(request: pytest.FixtureRequest) -> Sandbox:
    """Each sandbox that confines."""
    return sandbox(str(request.param))


@pytest.fixture(scope="session", autouse=True)
def _secrets_in_the_environment() -> None:
    # Every child of these tests would show it, if anything passed that must not.
    os.environ["ANTHROPIC_API_KEY"] = "sk-ant-CANARY"
