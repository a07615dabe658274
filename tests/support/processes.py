"""Real worker processes for tests of the whole: start, kill and drain them, and read what they log."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil

from shared.bus.keys import Names
from tests.support.forked import Done, Forked, run, warm

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds; a bound for machines that are busy, nothing is expected to take it
_KEPT = ("PATH", "HOME", "TMPDIR", "LANG")
_numbers = itertools.count(1)
T = TypeVar("T")


def until(ask: Callable[[], T], seconds: float = PATIENCE, what: str = "it", told: Any = None) -> T:
    """The first true value of `ask`; AssertionError, with what `told()` says, where none comes in time."""
    ends = time.monotonic() + seconds
    while not (found := ask()):
        if time.monotonic() > ends:
            raise AssertionError(f"{what} did not happen within {seconds:g} s\n{told() if told else ''}")
        time.sleep(0.01)
    return found


class Worker:
    """One process of ours, `python -m arguments`, with its log in a file."""

    def __init__(
        self,
        name: str,
        arguments: list[str],
        folder: Path,
        environment: dict[str, str],
        *,
        cold: bool = False,
    ) -> None:
        self.name, self.log = name, folder / f"{name}.{next(_numbers)}.log"
        self.log.touch()
        start = _cold if cold else warm().start
        self.process: subprocess.Popen[bytes] | Forked = start(
            arguments, folder, environment, stdout=self.log, stderr=self.log
        )
        self.pid = self.process.pid

    def events(self, start: int = 0) -> list[dict[str, Any]]:
        """The lines of its log from number `start` on; one that is being written does not count yet."""
        lines = self.log.read_text("utf-8", "replace").split("\n")[start:-1]
        return [_event(line) for line in lines]

    def said(self, start: int = 0) -> list[str]:
        """The words of these lines."""
        return [str(event["event"]) for event in self.events(start)]

    def says(self, words: str, seconds: float = PATIENCE, start: int = 0) -> dict[str, Any]:
        """Wait until its log has a line that holds these words; that line."""

        def look() -> dict[str, Any] | None:
            return next((event for event in self.events(start) if words in str(event["event"])), None)

        return until(look, seconds, f"{self.name} saying {words!r}", self.tail) or {}

    def ready(self) -> Worker:
        """Wait until it takes work; AssertionError with its log if it ends instead."""

        def look() -> bool:
            assert self.process.poll() is None, self.tail()
            return any(words.endswith(" ready") for words in self.said())

        until(look, PATIENCE, f"{self.name} being ready", self.tail)
        return self

    def tail(self) -> str:
        """The end of its log, for a failure's message."""
        return self.log.read_text("utf-8", "replace")[-6000:]

    def rss(self) -> int:
        """The memory that it has, in bytes."""
        return int(psutil.Process(self.pid).memory_info().rss)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, not to its children."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9."""
        self.signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def ended(self, seconds: float = PATIENCE) -> int:
        """Wait for its end; its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end\n{self.tail()}") from None

    def drain(self, seconds: float = PATIENCE) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return self.ended(seconds)


def _cold(
    arguments: Sequence[str], folder: Path, environment: dict[str, str], *, stdout: Path, stderr: Path
) -> subprocess.Popen[bytes]:
    with stdout.open("ab") as out, stderr.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            start_new_session=True,
        )


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    return event if isinstance(event, dict) and "event" in event else {"event": line}


class Site:
    """A home, a namespace of its own on a server, and the processes that were started there."""

    def __init__(self, folder: Path, url: str, **environment: str) -> None:
        self.folder, self.url = folder, url
        self.home = folder / "home"
        self.names = Names(environment.pop("PROMPTDOCK_NAMESPACE", f"c{os.getpid()}-{next(_numbers)}"))
        self.environment = {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "PYTHONPATH": str(ROOT),
            "PROMPTDOCK_HOME": str(self.home),
            "PROMPTDOCK_NAMESPACE": self.names.namespace,
            "PROMPTDOCK_LEASE": "1500",
            "UNSIGNED_MAY": "all",  # most tests speak as a program that nobody has to believe
            "REDIS_URL": url,
            "BUDGET_TITLES": "0",  # a call that most scripts of models know nothing of
            **environment,
        }
        self.workers: list[Worker] = []
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, agent: str, **environment: str) -> Worker:
        """Start an agent without waiting for it; one that is in the home's `agents` is taken from there."""
        own = (self.home / "agents" / agent).is_dir()
        arguments = ["agents", "--name", agent] if own else [f"agents.{agent}"]
        worker = Worker(agent, arguments, self.folder, {**self.environment, **environment})
        self.workers.append(worker)
        return worker

    def up(self, *agents: str, **environment: str) -> list[Worker]:
        """Start agents side by side; they are ready when this returns."""
        return [worker.ready() for worker in [self.start(agent, **environment) for agent in agents]]

    def run(self, *words: str, stdin: str = "") -> Done:
        """`promptdock words…`, whatever comes of it."""
        return run(["gateways.cli", *words], self.folder, self.environment, stdin)

    def query(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Rows of the site's SQLite store, JSON columns as text; none as long as there is no store."""
        file = self.home / "promptdock.db"
        if not file.exists():
            return []
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=PATIENCE)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql, values)]

    def close(self) -> None:
        """End what still runs, at once."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()


@contextlib.contextmanager
def site(folder: Path, url: str, **environment: str) -> Iterator[Site]:
    """A site that leaves no process behind."""
    made = Site(folder, url, **environment)
    try:
        yield made
    finally:
        made.close()
