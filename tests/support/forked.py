"""Processes of ours without the wait for their imports: forked by one that has them (warm.py), and real in all else.

A worker takes half a second of processor time to import what it needs, a command of the command line as much,
the page twice that, and the tests start more than a thousand. Each has a session, an environment and files of its
own, runs what `python -m` runs, and is killed with the tests. What is said of a start itself (what is imported,
which folder it obeys, how much memory it takes) is said of one from cold: `Worker(…, cold=True)`.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_PATIENCE = 60.0  # seconds; for the imports, on machines that are busy


class Forked:
    """What tests ask of a process, of one whose parent is another: as `subprocess.Popen` has it."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._ended = threading.Event()
        self.pid = 0
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, a signal's number below zero; None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it ended; the exit code."""
        if not self._ended.wait(timeout) or self.returncode is None:
            raise subprocess.TimeoutExpired(self._words, timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def ends(self, code: int) -> None:
        """Told by its parent."""
        self.returncode = code
        self._ended.set()


class Warm:
    """The parent of them all."""

    def __init__(self) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._running: dict[int, Forked] = {}
        self._one = threading.Lock()  # a start after the other: they are answered in this order
        self._started: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._waiting: Forked | None = None
        threading.Thread(target=self._hear, daemon=True).start()

    def start(
        self,
        words: Sequence[str],
        folder: Path,
        environment: dict[str, str],
        *,
        stdin: Path | None = None,
        stdout: Path | None = None,
        stderr: Path | None = None,
    ) -> Forked:
        """`python -m words…` there; what is written is appended to the files."""
        made = Forked(" ".join(words))
        files = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        asked: dict[str, Any] = {name: str(file or os.devnull) for name, file in files.items()}
        asked |= {"argv": list(words), "cwd": str(folder), "env": environment}
        with self._one:
            self._waiting = made
            assert self._parent.stdin is not None
            print(json.dumps(asked), file=self._parent.stdin, flush=True)
            self._started.get(timeout=_PATIENCE)
        return made

    def close(self) -> None:
        """It ends, and with it who still runs."""
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        self._parent.wait(_PATIENCE)

    def _hear(self) -> None:
        assert self._parent.stdout is not None
        for line in self._parent.stdout:
            pid, code = json.loads(line)
            if code is None:
                assert self._waiting is not None
                self._waiting.pid = pid
                self._running[pid] = self._waiting
                self._started.put(pid)
            else:
                self._running.pop(pid).ends(code)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def run(words: Sequence[str], folder: Path, environment: dict[str, str], stdin: str = "") -> Done:
    """`python -m words…` to its end; its streams are files below `folder`."""
    place = Path(tempfile.mkdtemp(prefix=".command-", dir=folder))
    files = {name: place / name for name in ("stdin", "stdout", "stderr")}
    for name, file in files.items():
        file.write_text(stdin if name == "stdin" else "")
    code = warm().start(words, folder, environment, **files).wait(_PATIENCE)
    done = Done(code, files["stdout"].read_text(), files["stderr"].read_text())
    shutil.rmtree(place)
    return done


@cache
def warm() -> Warm:
    """One for all tests of this process."""
    return Warm()


def close() -> None:
    """What the end of the tests calls."""
    if warm.cache_info().currsize:
        warm().close()
