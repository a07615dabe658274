"""Switches for the fault suite: a worker that kills itself at a named point, and mechanisms that are off.

Both do nothing unless the environment asks for them, which only tests/faults does.

    PROMPTDOCK_FAULT=effect done          SIGKILL at that point, every time
    PROMPTDOCK_FAULT=claimed@m-7          only where the point concerns m-7
    PROMPTDOCK_WITHOUT=fencing,journal    go on without: what the suite must notice
"""

from __future__ import annotations

import os
import signal
from typing import Literal

Mechanism = Literal["fencing", "gap-fill", "journal"]


def point(name: str, concerns: str = "") -> None:
    """Die here, without any clean-up, if the environment names this point."""
    wanted = os.environ.get("PROMPTDOCK_FAULT")
    if wanted and wanted in (name, f"{name}@{concerns}"):
        os.kill(os.getpid(), signal.SIGKILL)


def without(mechanism: Mechanism) -> bool:
    """Whether to go on without a mechanism, so that a test sees what it is good for."""
    wanted = os.environ.get("PROMPTDOCK_WITHOUT")
    return bool(wanted) and mechanism in str(wanted).split(",")
