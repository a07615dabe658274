"""A random secret in a file that only its owner reads: made on first use, the same for all who ask."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import subprocess
from pathlib import Path

from shared import failpoints
from shared.errors import ConfigurationError
from shared.redaction import hide

_LEAST = 32  # characters


def kept(file: Path) -> str:
    """What the file holds; ConfigurationError where it cannot be had, or is too short to be a secret."""
    try:
        found = _held(file) or _made(file)
    except OSError as error:
        raise ConfigurationError(
            f"the secret in {file} cannot be read", error.strerror or str(error), "see who owns the file"
        ) from error
    if len(found) < _LEAST:
        raise ConfigurationError(f"{file} holds no secret", "it is too short", "delete it: a new one is made")
    return found


def of_home(home: Path, given: str | None = None) -> str:
    """The secret with which the cluster of this home signs: the one that is set, else the home's own."""
    found = given or kept(home / "secret")
    hide(found)
    return found


def _held(file: Path) -> str:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return ""
    with os.fdopen(fd) as opened:
        what, whose, fix = os.fstat(fd), "", "delete it: a new one is made"
        if what.st_uid != os.geteuid():
            whose = "it belongs to another user"
        elif what.st_mode & 0o077:
            whose = "other users could read it"
        elif _tracked(file):
            whose = "git has it, and so has everybody who has the repository"
            fix = f"git rm --cached {file.name} in its folder, and delete it: a new one is made"
        if whose and not failpoints.without("private-files"):  # who knows it signs as anybody
            raise ConfigurationError(f"the secret in {file} is none", whose, fix)
        return opened.read(4096).strip()


def _tracked(file: Path) -> bool:
    """Whether git has it, as where somebody committed their data folder, or made one for others to clone."""
    folder = file.resolve().parent
    if not any((place / ".git").exists() for place in (folder, *folder.parents)):
        return False
    path = os.pathsep.join(place for place in os.get_exec_path() if Path(place).is_absolute())
    git = shutil.which("git", path=path)
    if git is None:
        return False
    # Nothing that the repository says runs: its hooks and its watcher are off, and none of our variables leads away.
    words = [
        git,
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
        "ls-files",
        "--error-unmatch",
    ]
    try:
        done = subprocess.run(
            [*words, "--", file.name], cwd=folder, env={"PATH": path}, timeout=10, check=False,
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return True  # nobody knows
    return done.returncode == 0


def _made(file: Path) -> str:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "r+") as opened:
        fcntl.flock(fd, fcntl.LOCK_EX)  # until it is closed
        found = opened.read(4096).strip()
        if not found:
            found = secrets.token_hex(_LEAST)
            opened.write(found)
        return found
