"""Switches for the fault suite: a worker that kills or stops itself at a named point, and mechanisms that are off.

Both do nothing unless the environment asks for them, which only tests do.

    PROMPTDOCK_FAULT=effect done             SIGKILL at that point, every time
    PROMPTDOCK_FAULT=claimed@m-7,worked@m-8  only where the point concerns m-7, and the other one m-8
    PROMPTDOCK_FAULT_ONCE=/a/folder          each only once among all workers that share the folder, but
    PROMPTDOCK_FAULT=!claimed@m-9            this one every time all the same
    PROMPTDOCK_FAULT=~model asked@m-9        SIGSTOP in place of SIGKILL
    PROMPTDOCK_WITHOUT=fencing,journal       go on without: what the suite must notice
    PROMPTDOCK_WITHOUT=proc-sys              a guard taken away: its attack must then succeed

Production refuses both.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Literal

Mechanism = Literal["clock", "fencing", "gap-fill", "idmapped-mounts", "journal"]

# What stands between hostile text and harm, each by a name of its own. Every one has an attack in the tests that
# succeeds when it is gone, and a line in SECURITY.md.
Guard = Literal[
    "audit-log",
    "beneath",
    "bound-yes",
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
    "landlock-asks",
    "hook-agent",
    "hook-maker",
    "landlock-sockets",
    "leftovers",
    "mark-person",
    "memory-bound",
    "no-network",
    "no-rule",
    "no-sandbox",
    "nobody-to-ask",
    "obeyed-files",
    "one-answer",
    "own-words",
    "plain-logs",
    "bus-password",
    "poisoned-entry",
    "session-owner",
    "signature",
    "private-files",
    "pinned-address",
    "poisoned-entry",
    "private-files",
    "private-network",
    "obeyed-files",  # files that other programs obey are asked for
    "plain-logs",  # one record is one line, in which nothing is obeyed by a terminal
    "proc-sys",
    "process-bound",
    "root-user",
    "roots",
    "safe-path",
    "scratch",
    "seccomp",
    "secret-files",
    "search-sandbox",
    "seccomp",
    "secret-shapes",
    "self-edits",
    "standing-literal",
    "standing-person",
    "unplanned-task",
    "veil",
    "who-answers",
    "secret-shapes",  # what looks like a key is in no log, audit row or output
    "worktree-only",
    "bound-yes",
    "task-maker",
    "veil",
    "who-answers",
]


def point(name: str, concerns: str = "") -> None:
    """Die or freeze here, without any clean-up, if the environment names this point."""
    wanted = os.environ.get("PROMPTDOCK_FAULT")
    if not wanted:
        return
    for one in wanted.split(","):
        if one.lstrip("!~") in (name, f"{name}@{concerns}") and _first(one):
            os.kill(os.getpid(), signal.SIGSTOP if one.startswith("~") else signal.SIGKILL)


def _first(name: str) -> bool:
    folder = os.environ.get("PROMPTDOCK_FAULT_ONCE")
    if not folder or name.startswith("!"):
        return True
    try:
        (Path(folder) / name.replace("/", "-")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def asked() -> list[str]:
    """The variables of this module that are set."""
    return [name for name in ("PROMPTDOCK_FAULT", "PROMPTDOCK_WITHOUT") if os.environ.get(name)]


def without(mechanism: Mechanism | Guard) -> bool:
    """Whether to go on without a mechanism, so that a test sees what it is good for."""
    wanted = os.environ.get("PROMPTDOCK_WITHOUT")
    return bool(wanted) and mechanism in str(wanted).split(",")
