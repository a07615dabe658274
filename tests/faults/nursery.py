"""Workers that are born quickly: forked from a process that has imported everything, and real in all else.

A worker needs seconds of processor time to import its libraries, which a thousand kills would pay a thousand
times. Each child has a session, an environment and a log of its own, and is started as `python -m` starts it.
"""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from shared.turns import scripts
from tests.support.processes import Site, Worker

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.faults.warm"])
_numbers = itertools.count(1)


class _Forked:
    """What `Worker` asks of a process, of one that the fork server started."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        assert process.pid is not None
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, number)


class Forked(Worker):
    """A worker of the nursery."""

    def __init__(self, name: str, module: str, folder: Path, environment: dict[str, str]) -> None:
        self.name, self.log = name, folder / f"{name}.{next(_numbers)}.log"
        self.log.touch()
        process = _context.Process(target=_live, args=(module, folder, environment, self.log), daemon=True)
        process.start()
        self.process = _Forked(process)  # type: ignore[assignment]
        self.pid = process.pid or 0


def start(site: Site, agent: str, **environment: str) -> Worker:
    """As `Site.start`, from the nursery."""
    worker = Forked(agent, f"agents.{agent}", site.folder, {**site.environment, **environment})
    site.workers.append(worker)
    return worker


def _live(module: str, folder: Path, environment: dict[str, str], log: Path) -> None:
    os.setsid()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    out = os.open(log, os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(out, number)
    if environment.get("PROMPTDOCK_WITHOUT"):
        importlib.reload(scripts)  # it looks at the switch when it is imported
    sys.argv = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with_parent() -> None:
    """A test that is killed leaves no worker behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
