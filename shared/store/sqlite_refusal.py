"""What a refusal of SQLite means to us: a conflict, a row that does not fit, a file that is busy, full or broken."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.errors import ConfigurationError, Conflict, PromptDockError, StoreUnavailable

BUSY = 5.0  # seconds that a write waits for another process's write
_REASONS = {
    "SQLITE_BUSY": (f"another process kept it locked for {BUSY:.0f} s", "try again"),
    "SQLITE_LOCKED": ("it is locked", "try again"),
    "SQLITE_FULL": ("the disk is full", "make room"),
    "SQLITE_IOERR": ("the disk failed, or is full", "look at the disk"),
    "SQLITE_READONLY": ("it is read-only", "make the file and its folder writable"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "make its folder, or give access to it"),
    "SQLITE_CORRUPT": ("it is damaged", "stop PromptDock and restore it from a backup"),
    "SQLITE_NOTADB": ("it is not a database", "stop PromptDock and restore it from a backup"),
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _translated(error, path) from error


def _translated(error: sqlite3.Error | OSError, path: Path) -> PromptDockError:
    code = getattr(error, "sqlite_errorname", "")
    if code in ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"):
        return Conflict(
            "the row exists already", str(error), "choose another name, or change the row that is there"
        )
    if str(error).startswith("no such module"):
        return ConfigurationError(
            f"the database {path} needs what this Python's SQLite does not have",
            str(error),
            "run PromptDock with a Python whose SQLite has FTS5",
        )
    if code == "SQLITE_CONSTRAINT_FOREIGNKEY":
        return Conflict("the row belongs to one that does not exist", str(error), "write that one first")
    if code.startswith(("SQLITE_CONSTRAINT", "SQLITE_MISMATCH")) or code == "SQLITE_ERROR":
        return PromptDockError("the Store refused a row", str(error))
    what = f"the database {path} cannot be used"
    for prefix, (why, fix) in _REASONS.items():
        if code.startswith(prefix):
            return StoreUnavailable(what, why, fix)
    return StoreUnavailable(what, str(error))
