"""Switches for the fault suite: a worker that kills or stops itself at a named point, and mechanisms that are off.

Both do nothing unless the environment asks for them, which only tests do.

    PROMPTDOCK_FAULT=effect done             SIGKILL at that point, every time
    PROMPTDOCK_FAULT=claimed@m-7,worked@m-8  only where the point concerns m-7, and the other one m-8
    PROMPTDOCK_FAULT_ONCE=/a/folder          each only once among all workers that share the folder, but
    PROMPTDOCK_FAULT=!claimed@m-9            this one every time all the same
    PROMPTDOCK_FAULT=~model asked@m-9        SIGSTOP in place of SIGKILL
    PROMPTDOCK_WITHOUT=fencing,journal       go on without: what the suite must notice
    PROMPTDOCK_WITHOUT=proc-sys              a guard taken away: its attack must then succeed

They are read once, where a process begins. Production refuses them: no worker starts there while one is set, and
where the environment says so none acts.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_VARIABLES = ("PROMPTDOCK_FAULT", "PROMPTDOCK_FAULT_ONCE", "PROMPTDOCK_WITHOUT")
Mechanism = Literal["clock", "fencing", "gap-fill", "idmapped-mounts", "journal"]

# What stands between hostile text and harm, each by a name of its own. Every one has an attack in the tests that
# succeeds when it is gone, and a line in SECURITY.md.
Guard = Literal[
    "audit-log",
    "beneath",
    "bound-yes",
    "bus-password",
    "caution",
    "classes",
    "claude-mentions",
    "claude-provider",
    "claude-sandbox",
    "clean-environment",
    "command-text",
    "disk-bound",
    "dry-run",
    "exact-arguments",
    "expiry",
    "folder-trust",
    "foreign-mark",
    "git-config",
    "git-folder",
    "git-hooks",
    "git-names",
    "git-read-only",
    "git-sandbox",
    "hard-links",
    "hidden-letters",
    "home-hidden",
    "hook-agent",
    "hook-maker",
    "landlock-asks",
    "landlock-sockets",
    "leftovers",
    "mark-person",
    "memory-bound",
    "no-network",
    "package-hosts",
    "no-rule",
    "no-sandbox",
    "nobody-to-ask",
    "obeyed-files",  # files that other programs obey are asked for
    "one-answer",
    "own-answers",
    "own-words",
    "pinned-address",
    "plain-logs",  # one record is one line, in which nothing is obeyed by a terminal
    "poisoned-entry",
    "private-files",
    "private-network",
    "proc-sys",
    "process-bound",
    "root-user",
    "roots",
    "safe-path",
    "scratch",
    "search-sandbox",
    "seccomp",
    "secret-files",
    "secret-shapes",  # what looks like a key is in no log, audit row or output
    "self-edits",
    "session-owner",
    "signed-person",
    "signature",
    "standing-literal",
    "standing-person",
    "task-maker",
    "unplanned-task",
    "veil",
    "web-open",
    "web-place",
    "web-sight",
    "web-tries",
    "who-answers",
    "worktree-only",
]


@dataclass(frozen=True)
class Switches:
    """What the environment asked for when the process began."""

    points: tuple[str, ...] = ()
    once: str = ""  # the folder in which it is noted which of them were met
    without: frozenset[str] = frozenset()


_read: list[Switches] = []


def read() -> None:
    """Take what the environment asks for now: a process does so once, where it reads its settings.

    In production that is nothing: commands that only look are not refused there.
    """
    if os.environ.get("PROMPTDOCK_ENV") == "production":
        _read[:] = [Switches()]
        return
    points, once, without = (os.environ.get(name, "") for name in _VARIABLES)
    _read[:] = [Switches(tuple(filter(None, points.split(","))), once, frozenset(without.split(",")))]


def _switches() -> Switches:
    """As they were read; a process without settings, such as one that confines a command, reads them here."""
    if not _read:
        read()
    return _read[0]


def point(name: str, concerns: str = "") -> None:
    """Die or freeze here, without any clean-up, if this point was asked for."""
    for one in _switches().points:
        if one.lstrip("!~") in (name, f"{name}@{concerns}") and _first(one):
            os.kill(os.getpid(), signal.SIGSTOP if one.startswith("~") else signal.SIGKILL)


def _first(name: str) -> bool:
    folder = _switches().once
    if not folder or name.startswith("!"):
        return True
    try:
        (Path(folder) / name.replace("/", "-")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def asked() -> list[str]:
    """The variables of this module that are set."""
    return [name for name in _VARIABLES if os.environ.get(name)]


def without(mechanism: Mechanism | Guard) -> bool:
    """Whether to go on without a mechanism, so that a test sees what it is good for."""
    return mechanism in _switches().without
