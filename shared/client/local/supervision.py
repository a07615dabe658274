"""The cluster that `up` started in this home: whether it runs, starting it, ending it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from shared.errors import ConfigurationError, PromptDockError, TimedOut, UsageError
from shared.folders import FOLDER, private
from shared.guard.processes import plan as plans
from shared.guard.processes import running as remains
from shared.guard.processes import starts
from shared.guard.processes.pid import birth

AGENTS, HOST = plans.AGENTS, plans.HOST
SERVICES = plans.SERVICES
counts, own = plans.counts, plans.own
RETURN = 30.0  # seconds in which a worker that was restarted should be back
DRAIN = 45.0  # seconds: the workers have 20, what does not end is killed after 25, Redis goes last


@dataclass(frozen=True)
class Supervised:
    """A running supervisor."""

    pid: int
    agents: tuple[str, ...]
    processes: frozenset[int] = frozenset()
    workers: Mapping[str, int] = field(default_factory=dict)  # the process of each replica
    replicas: tuple[str, ...] = ()  # that should run
    failed: Mapping[str, str] = field(default_factory=dict)  # of them, those that cannot start, and why
    services: tuple[str, ...] = ()  # gateways that run beside them
    host: int | None = None  # the process that runs the agents that are rows


@dataclass(frozen=True)
class PlanChange:
    """What `up` is asked for beyond the five agents."""

    without: Sequence[str] = ()
    added: Sequence[str] = ()
    scale: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.without or self.added or self.scale)


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
        living = remains.living(home)
        return Supervised(
            int(note["pid"]),
            tuple(note["agents"]),
            frozenset(process.pid for process in living),
            {process.name: process.pid for process in living if process.name not in (remains.REDIS, HOST)},
            tuple(note.get("replicas") or note["agents"]),
            dict(note.get("failed") or {}),
            tuple(note.get("services") or ()),
            next((process.pid for process in living if process.name == HOST), None),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def expected(home: Path) -> list[str]:
    """Who should be here: what `up` runs in this home, else the five."""
    found = running(home)
    return sorted(found.agents if found else AGENTS)


def is_up(home: Path) -> bool:
    """Whether a cluster runs in this home, or just begins to."""
    return _locked(home)


def refuse_second(home: Path) -> None:
    """UsageError where a cluster runs in this home already."""
    if _locked(home):
        raise UsageError(
            "the cluster is running already",
            f"in {home}",
            "see promptdock status; end it with promptdock down",
        )


def alter(home: Path, change: PlanChange) -> None:
    """Have the cluster that runs take up a change; UsageError for an agent that there is not."""
    plan = plans.read(home) or plans.ClusterPlan()
    plans.write(home, plan.changed(change.added, change.without, change.scale).checked(home))


def check(home: Path, change: PlanChange) -> None:
    """UsageError for an agent that there is not."""
    plans.ClusterPlan().changed(change.added, change.without, change.scale).checked(home)


def kept(home: Path, change: PlanChange) -> list[str]:
    """The options of an earlier `up` that still hold, since nobody ended what it started."""
    plan = plans.kept(home)
    changed = plans.words(plan.changed(change.added, change.without, change.scale))
    return [one for one in plans.words(plan) if one in changed]


def wanted(home: Path) -> list[str]:
    """The replicas and gateways that the plan of this home asks for, as far as it can be read."""
    plan = plans.read(home) or plans.ClusterPlan()
    return plan.replicas(home) + plan.services()


def log_file(home: Path) -> Path:
    """What the supervisor itself has to say."""
    return home / "logs" / "cluster.log"


class News:
    """What the supervisor warns of from now on."""

    def __init__(self, home: Path) -> None:
        self._file = log_file(home)
        self._at = self._size()

    def _size(self) -> int:
        with contextlib.suppress(OSError):
            return self._file.stat().st_size
        return 0

    def read(self) -> list[PromptDockError]:
        """What came since the last look."""
        found: list[PromptDockError] = []
        with contextlib.suppress(OSError), self._file.open("rb") as file:
            file.seek(self._at)
            whole, _, _ = file.read().rpartition(b"\n")
            self._at += len(whole) + 1 if whole else 0
            for line in whole.splitlines():
                with contextlib.suppress(ValueError, AttributeError):
                    event = json.loads(line)
                    if event.get("level") in ("warning", "error", "critical"):
                        parts = (str(event.get(name) or "") for name in ("event", "why", "fix"))
                        found.append(PromptDockError(*parts))
        return found


def start(
    home: Path, without: Sequence[str] = (), added: Sequence[str] = (), scale: Mapping[str, int] | None = None
) -> subprocess.Popen[bytes]:
    """Start the supervisor, in a session of its own: what a Ctrl-C means is decided by whoever started it."""
    file = log_file(home)
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.parent.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise unmade(home, error) from error
    words = [part for agent in without for part in ("--without", agent)]
    words += [part for agent in added for part in ("--with", agent)]
    words += [part for agent, count in (scale or {}).items() for part in ("--scale", f"{agent}={count}")]
    with open(file, "wb", opener=private) as out:
        return subprocess.Popen(
            starts.command("agents", *words),
            cwd=starts.where(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**starts.surroundings(os.environ), **stands(home)},
        )


def unmade(home: Path, error: OSError) -> ConfigurationError:
    """A data folder that cannot be made or written to."""
    place = Path(error.filename or home)
    in_the_way = next((one for one in (place, *place.parents) if one.exists() and not one.is_dir()), None)
    why = f"{in_the_way} is a file" if in_the_way else f"{place}: {error.strerror or error}"
    return ConfigurationError(
        f"the data folder {home} cannot be used", why, "set PROMPTDOCK_HOME to a folder that you may write to"
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


def restart(home: Path, replica: str, here: Callable[[int], bool]) -> int | None:
    """End one worker, drained, and wait until its successor is here; its process, or None where it had none.

    TimedOut where it does not come back; ConfigurationError where a setting is wrong by now.
    """
    found = running(home)
    old = next((one for one in remains.living(home) if one.name == replica), None)
    if found is None or old is None:
        return None
    old.signal(signal.SIGTERM)
    ends = time.monotonic() + DRAIN + RETURN
    while time.monotonic() < ends:
        if old.alive and time.monotonic() > ends - RETURN:
            old.signal(signal.SIGKILL)
        found = running(home)
        if found is None:
            raise PromptDockError("the cluster ended", f"nothing runs in {home}", "start it: promptdock up")
        pid = found.host if replica == HOST else found.workers.get(replica)
        if pid is not None and pid != old.pid and here(pid):
            return pid
        time.sleep(0.05)
    agent = plans.agent_of(replica)
    why = (
        found.failed.get(replica, "") or last_error(home, replica) or f"it was not here after {RETURN:.0f} s"
    )
    raise TimedOut(f"{replica} did not come back", why, f"see promptdock logs {agent}")


def last_error(home: Path, name: str) -> str:
    """What a worker, or `cluster` for the supervisor, complained of last; "" where nothing is known."""
    with contextlib.suppress(OSError):
        for line in reversed(
            (home / "logs" / f"{name}.log").read_text("utf-8", "replace").splitlines()[-50:]
        ):
            with contextlib.suppress(ValueError, AttributeError):
                event = json.loads(line)
                if event.get("level") in ("error", "critical"):
                    return ". ".join(str(event[key]) for key in ("event", "why", "fix") if event.get(key))
    return ""


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
