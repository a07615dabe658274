"""The cluster that `up` started in this home: whether it runs, starting it, ending it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from shared.errors import ConfigurationError, PromptDockError, TimedOut, UsageError
from shared.folders import FOLDER
from shared.guard import remains, starts
from shared.guard.birth import birth

DRAIN = 45.0  # seconds: the workers have 20, what does not end is killed after 25, Redis goes last


@dataclass(frozen=True)
class Supervised:
    """A running supervisor."""

    pid: int
    agents: tuple[str, ...]
    processes: frozenset[int] = frozenset()


def _locked(home: Path) -> bool:
    """Whether a supervisor holds this home: its lock goes with it, whatever ended it."""
    try:
        with (home / "cluster.lock").open("r") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    except OSError:
        return False
    return False


def running(home: Path) -> Supervised | None:
    """The supervisor of this home, once it has written down who it is."""
    if not _locked(home):
        return None
    try:
        note: dict[str, Any] = json.loads((home / "cluster.json").read_text())
        if not note["birth"] or birth(int(note["pid"])) != note["birth"]:
            return None  # a killed one's note, which its successor has not replaced yet
        processes = frozenset(process.pid for process in remains.living(home))
        return Supervised(int(note["pid"]), tuple(note["agents"]), processes)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def refuse_second(home: Path) -> None:
    """UsageError where a cluster runs in this home already."""
    if _locked(home):
        raise UsageError(
            "the cluster is running already",
            f"in {home}",
            "see promptdock status; end it with promptdock down",
        )


def log_file(home: Path) -> Path:
    """What the supervisor itself has to say."""
    return home / "logs" / "cluster.log"


def start(home: Path, without: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start the supervisor, in a session of its own: what a Ctrl-C means is decided by whoever started it."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = log_file(home)
    file.parent.mkdir(exist_ok=True, mode=0o700)
    left_out = [part for agent in without for part in ("--without", agent)]
    with file.open("wb") as out:
        return subprocess.Popen(
            starts.command("agents", *left_out),
            cwd=starts.where(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**starts.surroundings(os.environ), **stands(home)},
        )


def stands(home: Path) -> dict[str, str]:
    """What tells a process of ours, which stands elsewhere, for which folder and home it works."""
    return {FOLDER: os.environ.get(FOLDER) or str(Path.cwd()), "PROMPTDOCK_HOME": str(home)}


def become(module: str, home: Path, *arguments: str) -> NoReturn:
    """Turn this process into another one of ours."""
    environment = {**starts.surroundings(os.environ), **stands(home)}
    os.chdir(starts.where() or ".")
    words = starts.command(module, *arguments)
    os.execve(words[0], words, environment)


def why(home: Path, code: int) -> PromptDockError:
    """What the supervisor said before it ended with this exit code."""
    kinds = {2: UsageError, 4: ConfigurationError}
    kind = kinds.get(code, PromptDockError)
    if not home.exists():
        return PromptDockError(
            "the cluster ended", f"its home {home} was deleted", "start again: promptdock up"
        )
    file = log_file(home)
    text = file.read_text("utf-8", "replace") if file.exists() else ""
    for line in reversed(text.splitlines()):
        with contextlib.suppress(ValueError, AttributeError):
            event = json.loads(line)
            if event.get("level") == "error":
                told = kind(*(str(event.get(name) or "") for name in ("event", "why", "fix")))
                told.exit_code = code or 1
                return told
    last = text.strip().splitlines()[-1:] or ["it said nothing"]
    if code < 0 and remains.living(home):
        return PromptDockError(
            f"the supervisor was killed by signal {-code}",
            "the workers run on, and nobody starts again what dies",
            "end them with promptdock down, or start anew with promptdock up",
        )
    return kind(f"the cluster ended with exit code {code}", last[0][:300], f"see {file}")


def stop(home: Path, patience: float = DRAIN) -> list[str]:
    """End what `up` started, drained, also where its supervisor is dead; what was ended, in words.

    TimedOut if they do not end.
    """
    asked: set[int] = set()
    ends = time.monotonic() + patience
    while _locked(home):
        # One that has just started writes down who it is a moment later.
        found = running(home)
        if found is not None and found.pid not in asked:
            asked.add(found.pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGTERM)
        if time.monotonic() > ends:
            who = ", ".join(f"process {pid}" for pid in sorted(asked)) or "its supervisor"
            raise TimedOut("the cluster did not end", f"{who} still runs", f"look at {log_file(home)}")
        time.sleep(0.05)
    return [f"process {pid}" for pid in sorted(asked)] + _end_remains(home)


def _end_remains(home: Path) -> list[str]:
    """End what a killed supervisor left."""
    with contextlib.suppress(OSError), (home / "cluster.lock").open("r") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # else a new one has just begun, and does it itself
        ended = [f"{process.name} {process.pid}" for process in remains.end(home)]
        return [f"what a killed cluster had left: {', '.join(ended)}"] if ended else []
    return []


def left(home: Path) -> list[str]:
    """What runs on in this home with nobody who tends it."""
    if _locked(home):
        return []
    return [f"{process.name} ({process.pid})" for process in remains.living(home)]


def redis_pid(home: Path) -> int | None:
    """The process of this home's embedded server, as it was written down."""
    try:
        return int(json.loads((home / "redis.json").read_text())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
