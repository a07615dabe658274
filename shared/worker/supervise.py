"""The cluster on one machine: the embedded Redis where none is configured, and the workers, kept alive."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from shared import log
from shared.bus import embedded
from shared.errors import BusUnreachable, ConfigurationError, PromptDockError, UsageError
from shared.folders import HOME_NAME
from shared.guard import remains, starts
from shared.guard.birth import birth
from shared.settings import Settings

AGENTS = ("chatter", "planner", "researcher", "frontend", "backend")
_LOG_BYTES = 20 * 1024 * 1024
_STEADY = 30.0  # seconds after which a worker counts as having started well
_REDIS_PAUSE = 5.0  # seconds until a Redis that cannot start, say on a full disk, is tried again
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
    _redis_at: float = 0.0
    _stopping: bool = False
    _gave_up: PromptDockError | None = None

    async def run(self) -> None:
        """Until SIGTERM or SIGINT, or `promptdock down`."""
        home = self.settings.home
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if home.name == HOME_NAME and not (home / ".gitignore").exists():
            (home / ".gitignore").write_text("*\n")  # it lies in a folder of people
        with _only_one(home) as lock:
            loop = asyncio.get_running_loop()
            for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(name, self._stop)
            try:
                await self._clear()
                environment = self._environment()
                self._children = [_Child(agent) for agent in self.agents]
                self._note(environment["REDIS_URL"])
                while not self._stopping:
                    if not _is_ours(lock, home):
                        self._homeless()
                        break
                    if self._tend(environment):
                        self._note(environment["REDIS_URL"])
                    await asyncio.sleep(0.1)
            finally:
                await self._end()
                if _is_ours(lock, home):
                    (home / "cluster.json").unlink(missing_ok=True)
            if self._gave_up:
                raise self._gave_up

    def _stop(self) -> None:
        self._stopping = True

    async def _clear(self) -> None:
        """Two sets of workers, one of them tended by nobody, are never what is wanted."""
        left = await asyncio.to_thread(remains.end, self.settings.home)
        if left:
            told = ", ".join(f"{process.name} ({process.pid})" for process in left)
            log.get().warning("Ended what an earlier cluster left in this home", processes=told)

    def _homeless(self) -> None:
        """Nobody could find us any more, to look or to end us."""
        self._gave_up = PromptDockError(
            "the home of this cluster is gone",
            f"{self.settings.home} was deleted or replaced while it ran",
            "start again: promptdock up",
        )

    def _environment(self) -> dict[str, str]:
        """What the workers are started with: all of them on one Redis and one home."""
        if self.settings.redis_url is None:
            url = embedded.running(self.settings.home)
            if url is None:
                self._redis = embedded.Embedded(self.settings.home, namespace=self.settings.namespace)
                url = self._redis.start()
        else:
            url = self.settings.redis_url.get_secret_value()
        return {
            **{key: value for key, value in starts.surroundings(os.environ).items() if key != "AGENT_NAME"},
            "REDIS_URL": url,
            "PROMPTDOCK_HOME": str(self.settings.home),
        }

    def _tend(self, environment: dict[str, str]) -> bool:
        """Start again what died; whether there is another process now."""
        changed = self._tend_redis()
        for child in self._children:
            if child.process is not None and child.process.poll() is None:
                if child.falls and time.monotonic() - child.started > _STEADY:
                    child.falls = 0
                continue
            if child.process is not None:
                self._fell(child, child.process.returncode)
            if child.process is None and time.monotonic() >= child.again_at and not self._stopping:
                try:
                    self._start(child, environment)
                except OSError as error:  # its log cannot be opened
                    self._later(child, str(error))
                else:
                    changed = True
        return changed

    def _tend_redis(self) -> bool:
        if self._redis is None or self._redis.alive or time.monotonic() < self._redis_at:
            return False
        log.get().error("The embedded Redis ended; starting it again")
        try:
            self._redis.start()
        except BusUnreachable as error:
            # The workers wait for it: whoever makes room on the disk has the cluster back.
            self._redis_at = time.monotonic() + _REDIS_PAUSE
            log.get().error(error.what, why=error.why, fix=error.fix)
            return False
        return True

    def _start(self, child: _Child, environment: dict[str, str]) -> None:
        file = self.settings.home / "logs" / f"{child.agent}.log"
        file.parent.mkdir(exist_ok=True, mode=0o700)
        if file.exists() and file.stat().st_size > _LOG_BYTES:
            file.replace(file.with_suffix(".log.1"))
        with file.open("ab") as out:
            # A session of its own: Ctrl-C at the terminal is for us, who then drain the workers in order.
            child.process = subprocess.Popen(
                starts.command(f"agents.{child.agent}"),
                cwd=starts.where(),
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
        self._later(child, f"exit code {code}")

    def _later(self, child: _Child, why: str) -> None:
        child.falls += 1
        wait = min(10.0, 0.2 * 2 ** min(child.falls, 8)) if child.falls > 1 else 0.0
        child.again_at = time.monotonic() + wait
        log.get().warning(f"{child.agent} ended and is started again", why=why, in_s=round(wait, 1))

    def _note(self, url: str) -> None:
        agents = list(self.agents)
        facts = {"pid": os.getpid(), "birth": birth(os.getpid()), "agents": agents, "redis": log.redact(url)}
        running = {child.agent: child.process.pid for child in self._children if child.process is not None}
        if self._redis is not None and self._redis.pid is not None:
            running[remains.REDIS] = self._redis.pid
        try:
            remains.note(self.settings.home, facts, running)
        except OSError as error:
            log.get().warning("What runs could not be written down", why=str(error))

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


@contextlib.contextmanager
def _only_one(home: Path) -> Iterator[TextIO]:
    """One supervisor a home; a second one says so and leaves."""
    with (home / "cluster.lock").open("w") as file:
        for _ in range(5):  # a command that only looks whether somebody is here has it for a moment
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.02)
        else:
            raise UsageError(
                "the cluster is running already",
                f"in {home}",
                "see promptdock status; end it with promptdock down",
            )
        yield file


def _is_ours(lock: TextIO, home: Path) -> bool:
    """Whether the home is still the one that we locked."""
    try:
        there = (home / "cluster.lock").stat()
    except OSError:
        return False
    return os.path.samestat(there, os.fstat(lock.fileno()))


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
