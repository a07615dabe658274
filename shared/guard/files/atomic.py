"""Files that are there whole or not at all, whenever the process is killed, and that nobody else may read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from shared import failpoints


def put(file: Path, text: str) -> None:
    """Write or replace a file, on disk when this returns; OSError where that is not possible."""
    half = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        mode = 0o666 if failpoints.without("private-files") else 0o600
        opened = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(opened, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        half.replace(file)
    finally:
        half.unlink(missing_ok=True)
