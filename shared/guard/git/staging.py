"""What a commit of ours takes: no new file that holds secrets, nothing of a data folder, nothing that tools left."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from shared import failpoints
from shared.folders import HOME_NAME
from shared.guard.git.leftovers import Generated
from shared.guard.permissions.secret_files import holds_secret, is_secret

_LARGE = 256 * 1024  # bytes; who keeps a key in a larger file does not mean it as one
_MOST = 5000  # new files that are looked into


@dataclass(frozen=True)
class Left:
    """New files that a commit of ours did not take: those that hold secrets, and binaries that a command made."""

    secrets: list[str] = field(default_factory=list)
    binaries: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.secrets or self.binaries)

    def told(self, most: int = 50) -> list[str]:
        """Each with its reason."""
        return [
            *(f"{path}: it holds secrets, and git does not have it yet" for path in self.secrets[:most]),
            *(f"{path}: a command made it, and it is a binary" for path in self.binaries[:most]),
        ]


def without_secrets(root: Path, paths: list[str], fresh: set[str]) -> tuple[list[str], list[str]]:
    """Those that are staged, and those that are left out. What git has already stays; `fresh` is new to it."""
    if failpoints.without("secret-files"):
        return paths, []
    looked = 0
    left = []
    for path in paths:
        if path not in fresh:
            continue
        looked += 1
        if is_secret(path) or HOME_NAME in Path(path).parts or (looked <= _MOST and _holds(root / path)):
            left.append(path)
    return _parted(paths, left)


def without_leftovers(
    root: Path, paths: list[str], fresh: set[str], tracked: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Those that are staged, and the binaries that are left out; `fresh` is what nobody wrote on purpose.

    What lies in a folder that a tool made is left out without a word, as git leaves out what it ignores.
    """
    judge = Generated(root, tracked)
    asked = [path for path in paths if path in fresh]
    built = {path for path in asked if judge.leftover(path)}
    binaries = [path for path in asked if path not in built and judge.binary(path)]
    return _parted([path for path in paths if path not in built], binaries)


def _parted(paths: list[str], left: list[str]) -> tuple[list[str], list[str]]:
    out = set(left)
    return [path for path in paths if path not in out], [
        os.fsencode(path).decode("utf-8", "replace") for path in left
    ]


def _holds(file: Path) -> bool:
    try:
        what = file.lstat()
        if not stat.S_ISREG(what.st_mode) or what.st_size > _LARGE:
            return False
        return holds_secret(file.read_bytes())
    except OSError:
        return False
