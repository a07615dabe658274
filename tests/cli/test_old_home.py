"""A data folder that an earlier release made in a checkout is found there, used, and left out of its history."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from shared.folders import HOME_NAME
from tests.house.tree import ROOT, variables
from tests.tools.ground import git, repository

LIMIT = 90.0  # seconds; a bound for machines that are busy


def test_an_old_home_in_a_trusted_checkout_is_used_from_up_to_down(tmp_path: Path) -> None:
    checkout = repository(tmp_path / "shop", {"a.py": "a = 1\n"}).path
    (checkout / HOME_NAME).mkdir(mode=0o700)
    users = {name: str(tmp_path / name) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME")}

    def types(*words: str, code: int = 0, folder: Path = checkout) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gateways.cli", *words],
            cwd=folder,
            env={**_environment(), **users, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == code, f"{words}: {done}"
        return done.stdout

    assert Path(types("config", "home").strip()).parent == tmp_path / "XDG_DATA_HOME" / "promptdock"
    types("trust", str(checkout))
    (checkout / "src").mkdir()
    assert Path(types("config", "home", folder=checkout / "src").strip()) == checkout / HOME_NAME
    others = [
        word for name in ("planner", "researcher", "frontend", "backend") for word in ("--without", name)
    ]
    try:
        types("up", "--detach", *others)
        types("repo", "add", ".", code=1)  # what contains the data folder is opened to no agent
        said = json.loads(types("ask", "Hello", "--json", folder=checkout / "src"))
        assert said["status"] == "complete"
    finally:
        types("down")
    assert {"promptdock.db", "redis", "secret"} <= {file.name for file in (checkout / HOME_NAME).iterdir()}
    assert (checkout / HOME_NAME / ".gitignore").read_text() == "*\n"
    assert git(checkout, "status", "--porcelain") == ""
    assert not (tmp_path / "XDG_DATA_HOME" / "promptdock").exists()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in variables()}
