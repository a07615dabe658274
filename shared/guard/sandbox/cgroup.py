"""Control groups that bound what all sandboxed commands take together: processes and memory.

They are made below the group that we are in, or beside it, where the system lets us: for root it usually does, for
others where a part of the tree was given to them. The limits per process and per user hold besides.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from shared import failpoints
from shared.guard.processes.limits import MEMORY_SHARE, TOGETHER

_MOUNT = Path("/sys/fs/cgroup")
NAME = "promptdock"
# In the hierarchies of version 1 each has one of its own; of the names of its limits the first that is there is set.
_LIMITS = {
    "pids": ("pids.max",),
    "memory": ("memory.max", "memory.limit_in_bytes"),
}


@dataclass(frozen=True)
class Group:
    """The groups that a command enters, and what they bound; one that is entered cannot be left again."""

    folders: tuple[Path, ...] = ()
    processes: int = 0  # 0: not bounded
    memory: int = 0  # bytes; 0: not bounded

    @property
    def entering(self) -> str:
        """What a shell does to enter them and stay in; where it cannot, it ends."""
        return "".join(f"{_door(folder)} || exit 125; " for folder in self.folders)


def _door(folder: Path) -> str:
    """How a shell of one thread enters: version 1 takes that thread at once, all else waits some 10 ms for others."""
    tasks = folder / "tasks"
    how, file = ("echo 0", tasks) if tasks.exists() else ("echo $$", folder / "cgroup.procs")
    return f"{how} > {shlex.quote(str(file))}"


def _places(controller: str) -> list[Path]:
    """The folder of the group that we are in, and the one above it, in each hierarchy that has this controller."""
    found: list[Path] = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, names, path = line.split(":", 2)
            if controller in names.split(","):
                found.insert(0, _MOUNT / controller / path.lstrip("/"))
            elif number == "0" and not names:
                found.append(_MOUNT / path.lstrip("/"))
    return [place for one in found for place in (one, one.parent) if place.is_relative_to(_MOUNT)]


def _bounded(controller: str, value: int, name: str) -> Path | None:
    """A group with this limit, which a process of ours could enter; None where none can be made."""
    for place in _places(controller):
        own = place if place.name == name else place / name
        for limit in _LIMITS[controller]:
            with contextlib.suppress(OSError):
                if not (place / "cgroup.procs").exists():  # where version 1 is mounted, there is no group yet
                    break
                own.mkdir(exist_ok=True)
                with (own / limit).open("r+") as file:
                    file.write(str(value))
                if os.access(own / "cgroup.procs", os.W_OK) and os.access(place / "cgroup.procs", os.W_OK):
                    return own
    return None


def group(processes: int = TOGETHER, memory: int = 0, name: str = NAME) -> Group:
    """The groups, with their limits set; `memory` is by default a share of what there is."""
    memory = memory or int(total() * MEMORY_SHARE)
    first = None if failpoints.without("process-bound") else _bounded("pids", processes, name)
    second = None if failpoints.without("memory-bound") else _bounded("memory", memory, name)
    folders = tuple(dict.fromkeys(one for one in (first, second) if one))
    return Group(folders, processes if first else 0, memory if second else 0)


def total() -> int:
    """The memory that there is for us, in bytes: of the machine, or what our own group allows."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for place in _places("memory"):
        for limit in _LIMITS["memory"]:
            with contextlib.suppress(OSError, ValueError):
                found = min(found, int((place / limit).read_text()))
    return found
