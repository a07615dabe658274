"""What a commit of ours takes: never a new file that holds secrets, nor what lies in a data folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from shared import faults
from shared.folders import HOME_NAME
from shared.guard.secretfiles import holds_secret, is_secret

_LARGE = 256 * 1024  # bytes; who keeps a key in a larger file does not mean it as one
_MOST = 5000  # new files that are looked into


def stageable(root: Path, paths: list[str], fresh: set[str]) -> tuple[list[str], list[str]]:
    """Those that are staged, and those that are left out. What git has already stays; `fresh` is new to it."""
    if faults.without("secret-files"):
        return paths, []
    looked = 0
    left = []
    for path in paths:
        if path not in fresh:
            continue
        looked += 1
        if is_secret(path) or HOME_NAME in Path(path).parts or (looked <= _MOST and _holds(root / path)):
            left.append(path)
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
