"""The cluster on one machine: the embedded Redis where none is configured, and the workers, kept alive."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared import log
from shared.bus import embedded, signing
from shared.bus.factory import make_bus
from shared.bus.keys import Names
from shared.bus.presence import Presence, instance_of
from shared.errors import BusUnreachable, ConfigurationError, PromptDockError
from shared.folders import HOME_NAME, private
from shared.guard.processes import plan as plans
from shared.guard.processes import running as remains
from shared.guard.processes import starts
from shared.guard.processes.pid import birth
from shared.guard.processes.plan import AGENTS, ClusterPlan
from shared.settings import Settings
from shared.worker import cluster_home

__all__ = ["AGENTS", "ClusterPlan", "Supervisor", "plans"]

_LOG_BYTES = 20 * 1024 * 1024
_PAUSE = 0.5  # seconds between two looks at the home, its plan, and processes whose end was not told
_STEADY = 30.0  # seconds after which a worker counts as having started well
_REDIS_PAUSE = 5.0  # seconds until a Redis that cannot start, say on a full disk, is tried again
_FATAL = (4,)  # exit codes after which starting again cannot help
_DRAINED = 25.0  # seconds in which a worker hands over, before it is killed
_DRAINS = 1.0  # seconds that a worker must have run for its end to count as one that was asked for
_AGAIN = 10.0  # seconds until a worker whose settings were good before is tried again
_BURY = 60.0  # seconds that a dead worker's last traces may take to go
_LOOK = 1.0  # seconds between looks for agents of one's own


@dataclass
class _Child:
    """A worker process and how often it fell. `name` is that of the replica."""

    name: str
    process: subprocess.Popen[bytes] | None = None
    falls: int = 0
    started: float = 0.0
    again_at: float = 0.0
    proven: bool = False  # it has run for a while, or handed over: its settings were good then
    failed: str = ""  # why it cannot start
    edited: tuple[int, ...] = ()  # its own files, when it failed
    ends_at: float | None = None  # it is not wanted any more, and is killed then

    @property
    def agent(self) -> str:
        """Whose replica it is."""
        return plans.agent_of(self.name)

    @property
    def serves(self) -> bool:
        """Whether it is a gateway, and no agent's worker."""
        return self.name in plans.SERVICES

    @property
    def runs(self) -> bool:
        """Whether its process lives."""
        return self.process is not None and self.process.poll() is None


@dataclass
class Supervisor:
    """Starts the workers, starts again what dies, ends all of them drained."""

    settings: Settings
    agents: Sequence[str] = AGENTS
    plan: ClusterPlan | None = None
    _children: list[_Child] = field(default_factory=list)
    _redis: embedded.Embedded | None = None
    _redis_at: float = 0.0
    _stopping: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _heard: set[int] = field(default_factory=set)  # processes whose end wakes us
    _gave_up: PromptDockError | None = None
    _read: int = 0  # which writing of the plan was read last
    _looked: float = 0.0
    _beside: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self) -> None:
        """Until SIGTERM or SIGINT, or `promptdock down`."""
        home = self.settings.home
        cluster_home.make(home)
        with cluster_home.only_one(home) as lock:
            loop = asyncio.get_running_loop()
            for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.add_signal_handler(name, self._stop)
            try:
                await self._clear()
                plans.write(home, self.plan or ClusterPlan(tuple(self.agents)))
                environment = self._environment()
                self._follow()
                self._note(environment["REDIS_URL"])
                while not self._stopping:
                    if not cluster_home.is_ours(lock, home):
                        self._homeless()
                        break
                    if self._follow() | self._tend(environment):
                        self._note(environment["REDIS_URL"])
                    await self._pause(loop)
            finally:
                await self._end()
                if cluster_home.is_ours(lock, home):
                    (home / "cluster.json").unlink(missing_ok=True)
            if self._gave_up:
                raise self._gave_up

    def _stop(self) -> None:
        self._stopping = True
        self._wake.set()

    async def _pause(self, loop: asyncio.AbstractEventLoop) -> None:
        """Until a process ends or is to be started again, we are told to stop, or it is time to look."""
        for pid in self._running().values():
            if pid not in self._heard:
                self._hear_of(pid, loop)
        waits = [child.again_at for child in self._children if child.process is None and not child.failed]
        due = min(waits, default=float("inf"))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(_PAUSE, due - time.monotonic()))):
                await self._wake.wait()
        self._wake.clear()

    def _hear_of(self, pid: int, loop: asyncio.AbstractEventLoop) -> None:
        """Be woken by the end of a process, where the system tells it; else the next look finds it."""
        try:
            fd = os.pidfd_open(pid)
        except (AttributeError, OSError):
            return

        def ended() -> None:
            loop.remove_reader(fd)
            os.close(fd)
            self._heard.discard(pid)
            self._wake.set()

        self._heard.add(pid)
        loop.add_reader(fd, ended)

    def _running(self) -> dict[str, int]:
        running = {child.name: child.process.pid for child in self._children if child.process is not None}
        if self._redis is not None and self._redis.pid is not None:
            running[remains.REDIS] = self._redis.pid
        return running

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
            remains.HOME_MARK: str(self.settings.home),
        }

    def _follow(self) -> bool:
        """Take up what the plan, or the folder of one's own agents, says now; whether that is something else."""
        home, now = self.settings.home, time.monotonic()
        stamp = plans.stamp(home)
        if stamp == self._read and now - self._looked < _LOOK:
            return False
        self._looked = now
        if stamp != self._read:
            # What cannot be read leaves the plan as it is.
            self._read, self.plan = stamp, plans.read(home) or self.plan or ClusterPlan(tuple(self.agents))
        plan = self.plan or ClusterPlan()
        host = [] if plans.HOST in plan.without else [plans.HOST]
        wanted = [*plan.replicas(home), *host, *plan.services()]
        running = {child.name for child in self._children if child.ends_at is None}
        for child in self._children:
            if child.name not in wanted and child.ends_at is None:
                child.ends_at = now + _DRAINED
                if child.process is not None:
                    with contextlib.suppress(ProcessLookupError):
                        child.process.send_signal(signal.SIGTERM)
        leaving = {child.name for child in self._children if child.ends_at is not None}
        self._children += [_Child(name) for name in wanted if name not in running | leaving]
        return set(wanted) != running

    def _tend(self, environment: dict[str, str]) -> bool:
        """Start again what died; whether there is another process now."""
        changed = self._tend_redis()
        for child in list(self._children):
            if child.runs:
                if time.monotonic() - child.started > _STEADY:
                    child.falls, child.proven = 0, True
                if child.ends_at is not None and time.monotonic() > child.ends_at and child.process:
                    child.process.kill()
                continue
            if child.process is not None:
                self._fell(child, child.process.returncode, environment["REDIS_URL"])
                changed = True
            if child.ends_at is not None:
                self._children.remove(child)
                self._spawn(self._bury(child, 0, environment["REDIS_URL"]))
                changed = True
            elif child.failed and child.edited == plans.edited(self.settings.home, child.agent):
                continue  # until somebody corrects it
            elif child.process is None and time.monotonic() >= child.again_at and not self._stopping:
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
        file = self._log(child)
        file.parent.mkdir(exist_ok=True, mode=0o700)
        if file.exists() and file.stat().st_size > _LOG_BYTES:
            file.replace(file.with_suffix(".log.1"))
        child.failed, child.edited = "", plans.edited(self.settings.home, child.agent)
        if child.agent == plans.HOST:
            words = starts.command("agents.host")
        elif self._mine(child):
            words = starts.command("agents", "--name", child.agent)
        elif child.serves:
            words = starts.command(f"gateways.{child.name}", "--other-port")
        else:
            words = starts.command(f"agents.{child.agent}")
        with open(file, "ab", opener=private) as out:
            # A session of its own: Ctrl-C at the terminal is for us, who then drain the workers in order.
            child.process = subprocess.Popen(
                words,
                cwd=starts.where(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment,
                start_new_session=True,
            )
        child.started = time.monotonic()

    def _mine(self, child: _Child) -> bool:
        """Whether it is a folder of the person's own, which may also stand for a shipped one."""
        home = self.settings.home
        stands_in = home.name != HOME_NAME and child.agent in plans.own(home)
        return stands_in or child.agent not in (*AGENTS, *plans.SERVICES)

    def _log(self, child: _Child) -> Path:
        return self.settings.home / "logs" / f"{child.name}.log"

    def _fell(self, child: _Child, code: int, url: str) -> None:
        gone, child.process = child.process, None
        if self._stopping or child.ends_at is not None:
            return
        if code != 0 and gone is not None:
            self._spawn(self._bury(child, gone.pid, url))
        if code in _FATAL:
            self._cannot(child)
        elif code == 0 and time.monotonic() - child.started > _DRAINS:
            child.proven, child.again_at = True, 0.0  # asked to, and handed over
            log.get().info(f"{child.name} handed over and is started again")
        else:
            self._later(child, _cause(code))

    def _cannot(self, child: _Child) -> None:
        """A setting is wrong. A cluster that never ran ends by it; one that works goes on without this one."""
        file = self._log(child)
        why = cluster_home.last_error(file)
        if child.proven:
            self._later(child, why, _AGAIN)
            child.failed = ""
        elif self._mine(child) or child.serves:
            child.failed = why
            log.get().error(
                f"{child.name} cannot start", why=why, fix=f"see {file}; it is tried again once edited"
            )
        else:
            self._gave_up = ConfigurationError(
                f"{child.name} cannot start", why, f"see {file}; then start again"
            )
            self._stopping = True

    def _later(self, child: _Child, why: str, least: float = 0.0) -> None:
        child.falls += 1
        wait = min(10.0, 0.2 * 2 ** min(child.falls, 8)) if child.falls > 1 else 0.0
        child.again_at = time.monotonic() + max(wait, least)
        log.get().warning(
            f"{child.name} ended and is started again",
            why=why,
            fix=f"see promptdock logs {child.agent} ({self._log(child)})",
            in_s=round(max(wait, least), 1),
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _bury(self, child: _Child, pid: int, url: str) -> None:
        """Take away the presence of a worker that died, whose last heartbeat would count for 15 s; and an agent
        of the person's own whose folder is gone off the roster."""
        if child.serves:
            return
        bus = make_bus(url, self.settings, "promptdock-supervisor")
        try:
            async with asyncio.timeout(_BURY):
                presence = Presence(bus, Names(self.settings.namespace), signing.of_home(self.settings))
                hosts = child.agent == plans.HOST
                for card in await presence.here(None if hosts else child.agent):
                    if str(card.get("instance")).startswith(instance_of(pid)):
                        await presence.leave(str(card["agent"]), str(card["instance"]))
                while not hosts and child.agent not in (*AGENTS, *plans.own(self.settings.home)):
                    if await presence.retire(child.agent):
                        break
                    await asyncio.sleep(0.5)  # what it did last is still on its way to the Store
        except (PromptDockError, TimeoutError):
            pass  # it runs out by itself
        finally:
            await bus.close()

    def _note(self, url: str) -> None:
        living = [child for child in self._children if child.ends_at is None]
        wanted = [child for child in living if not child.serves and child.agent != plans.HOST]
        facts = {
            "pid": os.getpid(),
            "birth": birth(os.getpid()),
            "agents": list(dict.fromkeys(child.agent for child in wanted)),
            "replicas": [child.name for child in wanted],
            "services": [child.name for child in living if child.serves],
            "failed": {child.name: child.failed for child in living if child.failed},
            "redis": log.redact(url),
        }
        try:
            remains.note(self.settings.home, facts, self._running())
        except OSError as error:
            log.get().warning("What runs could not be written down", why=str(error))

    async def _end(self) -> None:
        """SIGTERM to all workers at once, SIGKILL for who does not drain, then Redis."""
        running = [child.process for child in self._children if child.process is not None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        ends = time.monotonic() + _DRAINED
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, max(0.1, ends - time.monotonic()))
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait(5)
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        if self._redis is not None:
            self._redis.stop()


def _cause(code: int) -> str:
    """In words, how a process ended."""
    if code >= 0:
        return f"it ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"it was killed by signal {-code} ({signal.Signals(-code).name})"
    return f"it was killed by signal {-code}"
