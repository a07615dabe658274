"""The id of a home, by which workers tell what lies on their own disk from what lies on another machine's."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path


def home_id(home: Path) -> str:
    """Made on first use: the same for all, also for workers that start at the same moment."""
    with contextlib.suppress(FileNotFoundError):
        if found := (home / "home-id").read_text().strip():  # whoever only looks need not be able to write
            return found
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(home / "home-id", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        file.seek(0)
        found = file.read().strip()
        if not found:
            found = secrets.token_hex(6)
            file.write(found)
        return found
