"""A control group that bounds how many processes all sandboxed commands have together.

Only root needs it: the kernel's limit per user (RLIMIT_NPROC) does not hold for root. It is made below the
group that we are in, where the system lets us.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
NAME = "promptdock"


def _places() -> list[Path]:
    with contextlib.suppress(OSError):
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        first = [_MOUNT / "pids" / path.lstrip("/") for _, names, path in lines if "pids" in names.split(",")]
        return first + [
            _MOUNT / path.lstrip("/") for number, names, path in lines if number == "0" and not names
        ]
    return []


def group(processes: int, name: str = NAME) -> Path | None:
    """The group, with its bound set and tried; None for others than root, or where it cannot be made."""
    if os.getuid() != 0:
        return None
    for place in _places():
        own = place if place.name == name else place / name
        with contextlib.suppress(OSError):
            own.mkdir(exist_ok=True)
            (own / "pids.max").write_text(str(processes))
            return own
    return None


def entered(argv: Sequence[str], own: Path | None) -> list[str]:
    """The command that enters the group and then becomes `argv`; where it cannot enter, nothing is run."""
    if own is None:
        return list(argv)
    script = 'echo $$ > "$0" || exit 125; exec "$@"'
    return ["/bin/sh", "-c", script, str(own / "cgroup.procs"), *argv]
