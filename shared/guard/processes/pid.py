"""Which process an id means: ids are given away again, the moment of a start is not."""

from __future__ import annotations

import contextlib
from pathlib import Path


def birth(pid: int) -> str:
    """When a process started, in a form that no other process of that id shares; "" for one that is gone."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # The name, in parentheses, may itself hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if Path("/proc/self").exists() else _birth_elsewhere(pid)
    return "" if fields[0] in "ZX" else f"{boot}:{fields[19]}"


def _birth_elsewhere(pid: int) -> str:
    import psutil

    with contextlib.suppress(psutil.Error):
        return f"{psutil.Process(pid).create_time():.2f}"
    return ""
