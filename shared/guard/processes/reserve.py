"""A reserve on the disk that no command takes: what is accepted must still be written down.

A command is ended when less is left, since there is no other bound on what it writes in all: it may make as many
files as it likes. Space cannot be reserved by it in advance (`seccomp`), so that it fills a disk no faster than
it writes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from shared import failpoints
from shared.errors import ToolError
from shared.guard.processes import limits

EVERY = 0.1  # seconds between two looks


@dataclass(frozen=True)
class Reserve:
    """What must stay free where a command writes: bytes, and files that can still be made."""

    folder: Path
    bytes: int
    files: int

    @classmethod
    def of(cls, folder: Path) -> Reserve | None:
        """The reserve of the disk that this folder lies on; ToolError where it is used up already.

        Where there is less than the reserve, but not much less, a command may still run: it may be the one that
        tidies up.
        """
        if failpoints.without("disk-bound"):
            return None
        disk = os.statvfs(folder)
        wanted = min(limits.RESERVE_BYTES, int(disk.f_blocks * disk.f_frsize * limits.RESERVE_SHARE))
        files = min(limits.RESERVE_FILES, int(disk.f_files * limits.RESERVE_SHARE))
        free = disk.f_bavail * disk.f_frsize
        if free < wanted // 2 or disk.f_favail < files // 2:
            raise ToolError(
                "the command was not run", f"the disk is full: {_mib(free)} MiB are left", "free some space"
            )
        # Where it is below the reserve, but not far, it may go a little further down.
        left = wanted if free >= wanted else max(wanted // 2, free - wanted // 16)
        return cls(folder, left, min(files, disk.f_favail // 2))

    def taken(self) -> str:
        """Why a command must end now; empty while enough is left."""
        disk = os.statvfs(self.folder)
        free = disk.f_bavail * disk.f_frsize
        if free < self.bytes:
            return f"it was ended: only {_mib(free)} MiB are left on the disk; remove what it wrote"
        if disk.f_favail < self.files:
            return f"it was ended: only {disk.f_favail} more files fit on the disk; remove what it wrote"
        return ""


def _mib(count: int) -> int:
    return count // 1024**2
