"""All agents that are rows, in one process: each is a worker of its own, begun and ended as its row comes and goes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shared import log
from shared.errors import ConfigurationError, Missing, PromptDockError, StoreUnavailable
from shared.profiles.profile import Profile
from shared.settings import Settings
from shared.store.records import Agent, ProfileRow
from shared.worker import main
from shared.worker import resources as composition
from shared.worker.resources import Resources

if TYPE_CHECKING:
    from shared.worker.worker import Worker

_LOOK = 5.0  # seconds between looks, where nobody says that rows changed
_AGAIN = 5.0  # seconds until one that failed is tried again
_RETIRING = 60  # looks whether an agent that is gone has nothing left to do
_ROWS = frozenset({"agents", "profiles"})


@dataclass
class _Hosted:
    """One agent that runs here."""

    worker: Worker
    task: asyncio.Task[None]
    kind: str


class Host:
    """Keeps what runs here as the rows say."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._running: dict[str, _Hosted] = {}
        self._failed: dict[str, float] = {}  # agents that could not begin, and when they are tried again
        self._look = asyncio.Event()
        self._stopping = False
        self._saying: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self._stop)
        connection = self._resources.connection
        board_name = connection.names.board
        board = connection.bus.listener([board_name], self._heard, self._ready, board_name)
        listening = asyncio.create_task(board.run())
        try:
            while not self._stopping:
                self._look.clear()
                await self._follow()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._look.wait()
        finally:
            listening.cancel()
            for task in self._saying:
                task.cancel()
            await asyncio.gather(listening, *self._saying, return_exceptions=True)
            await self._end(list(self._running))

    def _stop(self) -> None:
        self._stopping = True
        self._look.set()

    def _heard(self, _channel: str, data: bytes) -> None:
        if not _ROWS.isdisjoint(data.decode("utf-8", "replace").split()):
            self._look.set()

    async def _ready(self) -> None:
        log.get().info("Host ready")
        self._look.set()

    async def _follow(self) -> None:
        """Begin what is new, end what is gone, and begin again what ended by itself."""
        try:
            wanted = await rows(self._resources)
        except StoreUnavailable as error:
            log.get().warning("The agents that are rows stay as they were last read", why=str(error))
            return
        ended = [name for name, one in self._running.items() if one.task.done()]
        for name in ended:
            self._bury(name)
        kinds = {name: one.kind for name, one in self._running.items()}
        await self._end(
            [name for name, kind in kinds.items() if name not in wanted or wanted[name].kind != kind]
        )
        now = asyncio.get_running_loop().time()
        self._failed = {name: at for name, at in self._failed.items() if name in wanted}
        for name, profile in wanted.items():
            if name not in self._running and self._failed.get(name, 0.0) <= now:
                await self._begin(name, profile)

    def _bury(self, name: str) -> None:
        task = self._running.pop(name).task
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.get().error(f"{name} ended", why=str(error))
            self._failed[name] = asyncio.get_running_loop().time() + _AGAIN

    async def _begin(self, name: str, profile: Profile) -> None:
        try:
            # A stale of its own: each is read anew when it itself was changed.
            own = replace(self._resources, stale=composition.unread())
            with log.bound_contextvars(agent=name):
                log.get().info(f"{profile.called} agent starting...")
                worker = await main.make(own, profile)
                task = asyncio.create_task(_work(worker, own), name=f"agent {name}")
        except PromptDockError as error:
            self._failed[name] = asyncio.get_running_loop().time() + _AGAIN
            log.get().error(f"{name} cannot start", why=str(error))
            return
        task.add_done_callback(lambda _task: self._look.set())
        self._running[name] = _Hosted(worker, task, profile.kind)

    async def _end(self, names: list[str]) -> None:
        """Let them hand over, all at once."""
        gone = [self._running.pop(name) for name in names]
        for one in gone:
            one.worker.stop()
        await asyncio.gather(*(one.task for one in gone), return_exceptions=True)
        if not self._stopping:
            for name in names:
                self._beside(self._retire(name))

    async def _retire(self, name: str) -> None:
        """Take it off the roster, once what it did last is in the Store."""
        presence = self._resources.connection.presence
        with contextlib.suppress(PromptDockError):
            for _ in range(_RETIRING):
                if name in self._running or await presence.retire(name):
                    return
                await asyncio.sleep(0.5)

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)


async def _work(worker: Worker, own: Resources) -> None:
    try:
        await worker.run()
    finally:
        await own.mcp.close()  # the rest belongs to the host


async def rows(resources: Resources) -> dict[str, Profile]:
    """The agents that are rows, with their profiles; what cannot be used is left out, and said."""
    found: dict[str, Profile] = {}
    for row in await resources.store.select(Agent, {"destroyed_at": None}, order=[("name", "asc")]):
        if row.profile_id is None:
            continue
        try:
            found[row.name] = await _profile(resources, row)
        except (Missing, PromptDockError) as error:
            if isinstance(error, StoreUnavailable):
                raise
            log.get().error(f"{row.name} cannot start", why=str(error))
    return found


async def _profile(resources: Resources, row: Agent) -> Profile:
    from shared.profiles import rows as profiles

    kept = await resources.store.select(ProfileRow, {"id": row.profile_id}, limit=1)
    if not kept:
        raise Missing(f"the profile of {row.name} is gone", "it was deleted", "give it one: configure_agent")
    found = profiles.of_row(kept[0], row.name)
    if found.kind != "coding" or row.kind != "claude":
        return found
    from shared.worker.coding import executor

    claude = found.model_copy(update={"executor": "claude-code"})
    try:
        executor.check(resources.settings, claude)
    except ConfigurationError:  # it is not installed: our loop carries the tasks out
        return found
    return claude


async def serve(settings: Settings) -> None:
    """The host of all agents that are rows, until it is stopped."""
    log.bind_contextvars(agent="host")
    log.get().info("Host starting...")
    resources = await composition.build(settings, "host")
    log.get().info("Connected to Redis")
    try:
        await Host(resources).run()
    finally:
        await resources.close()


async def serve_one(settings: Settings, name: str) -> None:
    """One agent that is a row, alone in its process."""
    resources = await composition.build(settings, name)
    try:
        found = await resources.store.select(Agent, {"name": name}, limit=1)
        if not found or found[0].profile_id is None or found[0].destroyed_at is not None:
            raise ConfigurationError(
                f"there is no agent called {name!r}",
                f"neither {settings.home / 'agents' / name}, the shipped ones nor the Store has it",
                "make a profile.toml and a prompt.md there, or: promptdock agents create NAME",
            )
        profile = await _profile(resources, found[0])
    finally:
        await resources.close()
    await main.serve(settings, profile)
