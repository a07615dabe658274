"""The processes of a home's cluster, written down so that they can be ended when their supervisor was killed.

`<home>/cluster.json` names them with the moment of their start; nobody who has a reused id is ever signalled. One
that was started just before its supervisor was killed stands in no note: it is known by its environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shared.errors import TimedOut
from shared.guard.files import atomic
from shared.guard.processes.pid import birth

REDIS = "redis"
HOME_MARK = (
    "PROMPTDOCK_SUPERVISED"  # in the environment of supervised processes: the home whose cluster they are
)
_DRAIN = 25.0  # seconds: the workers have 20 to hand over
_KILL = 5.0


@dataclass(frozen=True)
class Process:
    """One process of a cluster: an agent's name, or `redis`."""

    name: str
    pid: int
    birth: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return bool(self.birth) and birth(self.pid) == self.birth

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)


def note(home: Path, facts: dict[str, Any], running: dict[str, int]) -> None:
    """Write down what runs, by name and process id, whole or not at all."""
    processes = [asdict(Process(name, pid, birth(pid))) for name, pid in running.items()]
    atomic.put(home / "cluster.json", json.dumps({**facts, "processes": processes}))


def living(home: Path) -> list[Process]:
    """Those written down in this home that still run."""
    try:
        noted = json.loads((home / "cluster.json").read_text())["processes"]
        found = [Process(str(one["name"]), int(one["pid"]), str(one["birth"])) for one in noted]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [process for process in found if process.alive]


def _marked(home: Path) -> list[Process]:
    """Those that run for this home by their environment, whether or not they were written down."""
    import psutil

    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(HOME_MARK) == str(home) and process.pid != os.getpid():
                name = " ".join(process.cmdline()).rpartition(" -m ")[2].partition(" ")[0]
                found.append(
                    Process(name.rpartition(".")[2] or process.name(), process.pid, birth(process.pid))
                )
    return found


def end(home: Path, patience: float = _DRAIN) -> list[Process]:
    """End what a dead supervisor left: workers drained, Redis last. Only for who holds the home's lock."""
    noted = living(home)
    known = {process.pid for process in noted}
    left = [*noted, *(process for process in _marked(home) if process.pid not in known)]
    _end([process for process in left if process.name != REDIS], patience)
    _end([process for process in left if process.name == REDIS], patience)
    if left:
        (home / "redis.json").unlink(missing_ok=True)
    (home / "cluster.json").unlink(missing_ok=True)
    return left


def _end(processes: list[Process], patience: float) -> None:
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, _KILL)):
        for process in processes:
            process.signal(number)
        ends = time.monotonic() + seconds
        while any(process.alive for process in processes) and time.monotonic() < ends:
            time.sleep(0.02)
    if still := [f"{process.name} ({process.pid})" for process in processes if process.alive]:
        raise TimedOut("what an earlier cluster left did not end", ", ".join(still), "end it by hand")
