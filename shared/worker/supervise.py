"""The cluster on one machine: the embedded Redis where none is configured, and the workers, kept alive."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared import log
from shared.bus import embedded
from shared.errors import ConfigurationError, UsageError
from shared.settings import Settings

AGENTS = ("chatter", "planner", "researcher", "frontend", "backend")
_LOG_BYTES = 20 * 1024 * 1024
_STEADY = 30.0  # seconds after which a worker counts as having started well
_FATAL = (4,)  # exit codes after which starting again cannot help


@dataclass
class _Child:
    """A worker process and how often it fell."""

    agent: str
    process: subprocess.Popen[bytes] | None = None
    falls: int = 0
    started: float = 0.0
    again_at: float = 0.0


@dataclass
class Supervisor:
    """Starts the workers, starts again what dies, ends all of them drained."""

    settings: Settings
    agents: Sequence[str] = AGENTS
    _children: list[_Child] = field(default_factory=list)
    _redis: embedded.Embedded | None = None
    _stopping: bool = False
    _gave_up: ConfigurationError | None = None

    async def run(self) -> None:
        """Until SIGTERM or SIGINT, or `promptdock down`."""
        home = self.settings.home
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _only_one(home):
            loop = asyncio.get_running_loop()
            for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(name, self._stop)
            try:
                environment = self._environment()
                self._children = [_Child(agent) for agent in self.agents]
                self._note(environment["REDIS_URL"])
                while not self._stopping:
                    self._tend(environment)
                    await asyncio.sleep(0.1)
            finally:
                await self._end()
            if self._gave_up:
                raise self._gave_up

    def _stop(self) -> None:
        self._stopping = True

    def _environment(self) -> dict[str, str]:
        """What the workers are started with: all of them on one Redis and one home."""
        if self.settings.redis_url is None:
            url = embedded.running(self.settings.home)
            if url is None:
                self._redis = embedded.Embedded(self.settings.home)
                url = self._redis.start()
        else:
            url = self.settings.redis_url.get_secret_value()
        return {
            **{key: value for key, value in os.environ.items() if key != "AGENT_NAME"},
            "REDIS_URL": url,
            "PROMPTDOCK_HOME": str(self.settings.home),
        }

    def _tend(self, environment: dict[str, str]) -> None:
        if self._redis is not None and not self._redis.alive:
            log.get().error("The embedded Redis ended; starting it again")
            self._redis.start()
        for child in self._children:
            if child.process is not None and child.process.poll() is None:
                if child.falls and time.monotonic() - child.started > _STEADY:
                    child.falls = 0
                continue
            if child.process is not None:
                self._fell(child, child.process.returncode)
            if child.process is None and time.monotonic() >= child.again_at and not self._stopping:
                self._start(child, environment)

    def _start(self, child: _Child, environment: dict[str, str]) -> None:
        file = self.settings.home / "logs" / f"{child.agent}.log"
        file.parent.mkdir(exist_ok=True, mode=0o700)
        if file.exists() and file.stat().st_size > _LOG_BYTES:
            file.replace(file.with_suffix(".log.1"))
        with file.open("ab") as out:
            # A session of its own: Ctrl-C at the terminal is for us, who then drain the workers in order.
            child.process = subprocess.Popen(
                [sys.executable, "-m", f"agents.{child.agent}"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment,
                start_new_session=True,
            )
        child.started = time.monotonic()

    def _fell(self, child: _Child, code: int) -> None:
        child.process = None
        if self._stopping:
            return
        if code in _FATAL:
            file = self.settings.home / "logs" / f"{child.agent}.log"
            self._gave_up = ConfigurationError(
                f"{child.agent} cannot start", _last_error(file), f"see {file}; then start again"
            )
            self._stopping = True
            return
        child.falls += 1
        wait = min(10.0, 0.2 * 2 ** min(child.falls, 8)) if child.falls > 1 else 0.0
        child.again_at = time.monotonic() + wait
        log.get().warning(f"{child.agent} ended and is started again", exit_code=code, in_s=round(wait, 1))

    def _note(self, url: str) -> None:
        note = {"pid": os.getpid(), "agents": list(self.agents), "redis": log.redact(url)}
        (self.settings.home / "cluster.json").write_text(json.dumps(note))

    async def _end(self) -> None:
        """SIGTERM to all workers at once, SIGKILL for who does not drain, then Redis."""
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        ends = time.monotonic() + 25
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, max(0.1, ends - time.monotonic()))
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait(5)
        if self._redis is not None:
            self._redis.stop()
        (self.settings.home / "cluster.json").unlink(missing_ok=True)


@contextlib.contextmanager
def _only_one(home: Path) -> Any:
    """One supervisor a home; a second one says so and leaves."""
    with (home / "cluster.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                "the cluster is running already",
                f"in {home}",
                "see promptdock status; end it with promptdock down",
            ) from None
        yield


def _last_error(file: Path) -> str:
    """The last line of level error in a worker's log."""
    with contextlib.suppress(OSError):
        for line in reversed(file.read_text("utf-8", "replace").splitlines()[-50:]):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if event.get("level") == "error":
                return ". ".join(str(event[key]) for key in ("event", "why", "fix") if event.get(key))
    return "it ended with a configuration error"
