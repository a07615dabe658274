"""A file as a lock among processes; the file may be removed by whoever holds it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from pathlib import Path

from shared.errors import Busy

_PAUSE = 0.02


def attempt(file: Path) -> int | None:
    """The locked descriptor, or None while another holds it; closing the descriptor gives the lock back."""
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its last holder may have removed it between our open and our lock: then it locks nothing.
        if os.fstat(fd).st_ino == file.stat().st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


async def acquire(file: Path, seconds: float) -> int:
    """Like `attempt`, waiting up to `seconds`; Busy after that."""
    end = time.monotonic() + seconds
    while (fd := attempt(file)) is None:
        if time.monotonic() >= end:
            raise Busy("it is being changed by somebody else", f"waited {seconds:g} s", "try again later")
        await asyncio.sleep(_PAUSE)
    return fd
