"""One worker process: join the bus, keep presence, claim turns, hand them on, drain."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from shared import log
from shared.bus import messages
from shared.bus.keys import CHATTER, HUMAN_INPUT
from shared.bus.presence import instance_of
from shared.errors import BusUnreachable, ConfigurationError, PromptDockError
from shared.profiles.profile import Profile
from shared.turns.handoff import Handoff
from shared.turns.intake import Intake
from shared.turns.pressure import Pressure
from shared.worker.dispatch import Dispatcher
from shared.worker.pool import Make, Pool
from shared.worker.resources import CoreResources, redis_warnings
from shared.worker.runners.closing import Replies

DRAIN = 20.0  # seconds in which a worker hands over
_BEATS = 4.0  # seconds between heartbeats of presence
_IDLE = 2.0  # seconds between looks for turns where none is due
_CHANGE = 1.0  # seconds after which it tells what it began or ended
_FOREIGN = 0.25  # seconds in which another cluster answers our first heartbeat


class Duties(Protocol):
    """What a worker does and says beside its turns, by what its agent is."""

    def begin(self, instance: str, busy: Callable[[], bool]) -> dict[str, Coroutine[Any, Any, None]]:
        """What runs as long as the worker, by name; `busy`: whether it holds turns."""

    def facts(self) -> dict[str, Any]:
        """What its heartbeat says of it."""

    def shown(self) -> object:
        """What of that is told at once when it changes."""

    def hurry(self) -> None:
        """An operator wants what waits for a while to be tried now."""

    async def admit(self) -> None:
        """ConfigurationError where it may not work in this cluster; it is on the bus already."""

    def ready(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """It is, and takes turns."""

    def turn_ended(self) -> None:
        """One of its turns is over."""

    async def hand_over(self) -> None:
        """No turn runs any more: hand over what else is kept here."""

    async def leave(self) -> None:
        """It has left the bus."""


class Worker:
    """A replica of one agent. At its end its turns have `patience` seconds before they are handed over."""

    def __init__(
        self,
        resources: CoreResources,
        profile: Profile,
        make: Make,
        duties: Duties,
        patience: float = DRAIN / 4,
    ) -> None:
        self.resources, self.profile = resources, profile
        self.instance = instance_of(os.getpid()) + secrets.token_hex(2)
        self.queue = resources.connection.queue(profile.name)
        self.pool = Pool(self.queue, make, self._ended, profile.turns)
        self._duties, self._patience = duties, patience
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._spawned: set[asyncio.Task[None]] = set()
        self._started = messages.now()
        self._since = time.monotonic()
        self._foreign = asyncio.Event()  # another cluster speaks on our channels
        self._channels = [resources.connection.names.agent(profile.name)]
        if profile.name == CHATTER:
            self._channels.insert(0, resources.connection.names.channel(HUMAN_INPUT))
        self._dispatcher = Dispatcher(
            Replies(resources.connection, profile.name),
            resources.signatures,
            resources.settings.approver_roles,
            resources.stale,
            profile,
            self.pool,
            self.spawn,
            stop=self.stop,
            hurry=duties.hurry,
            met=self._met,
        )
        listened = [
            *self._channels,
            self._dispatcher.broadcast,
            self._dispatcher.status,
            self._dispatcher.clusters,
            self._dispatcher.board,
        ]
        self.handoff = Handoff(self.queue, self.instance, lambda: self.pool.idle, self.pool.given)
        self.intake = Intake(
            *(self.queue, listened, self._on_wake_up),
            plain=self._channels,
            handoff=self.handoff,
            signatures=resources.signatures,
            here=lambda: (str(card["agent"]) for card in resources.connection.presence.at_hand()),
        )

    async def run(self) -> None:
        """Work until told to stop."""
        services = [asyncio.create_task(work, name=name) for name, work in self._services().items()]
        try:
            for warning in await redis_warnings(self.resources.connection.bus):
                log.get().warning(warning)
            await self._first_of(self.intake.ready.wait(), services, 30)
            log.get().info(f"Subscribed to: {', '.join(self._channels)}")
            try:
                await self._beat_presence()
            except (BusUnreachable, ConfigurationError):
                raise
            except PromptDockError as error:
                log.get().error("No heartbeat", why=str(error))
            await self._alone()
            await self._duties.admit()
            self._duties.ready(self.spawn)
            await self._first_of(self._stop.wait(), services, None)
            await self._drain()
        finally:
            self.pool.drop()
            for task in [*services, *self._spawned]:
                task.cancel()
            await asyncio.gather(*services, *self._spawned, return_exceptions=True)
            with contextlib.suppress(PromptDockError, TimeoutError):
                async with asyncio.timeout(3):
                    await self.resources.connection.presence.leave(self.profile.name, self.instance)
            with contextlib.suppress(PromptDockError, TimeoutError):
                async with asyncio.timeout(3):
                    await self._duties.leave()

    async def _alone(self) -> None:
        """Pub/sub knows no database numbers: another cluster on this server would hear and answer with us."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FOREIGN):
                await self._foreign.wait()
            raise ConfigurationError(
                "another cluster uses the same channels on this Redis",
                "channels are shared by all databases of one server",
                "give this one its own PROMPTDOCK_NAMESPACE",
            )

    def stop(self) -> None:
        """Take nothing more, hand over, and end."""
        self.pool.draining = True
        self._stop.set()
        self._wake.set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside a turn, and never lose it silently."""
        task = asyncio.create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    def listen_for_signals(self) -> None:
        """SIGTERM and SIGINT drain."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.stop)

    def _services(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {
            "intake": self.intake.run(),
            "claims": self._claims(),
            "leases": self._leases(),
            "presence": self._presence(),
            "memory": Pressure(self.queue).run(),
            **self._duties.begin(self.instance, lambda: len(self.pool) > 0),
        }

    async def _first_of(
        self, event: Coroutine[Any, Any, Any], services: list[asyncio.Task[None]], wait: float | None
    ) -> None:
        """Wait for the event; a service that ended is the end of the worker, never silence."""
        waiter = asyncio.create_task(event)
        done, _ = await asyncio.wait([waiter, *services], timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        if waiter in done:
            return
        waiter.cancel()
        for service in done:
            if error := service.exception():
                raise error
            raise PromptDockError(f"the service {service.get_name()} of {self.profile.name} ended by itself")
        raise BusUnreachable("Redis takes no subscription", "it did not confirm within 30 s")

    # -- claims and leases -----------------------------------------------------------------------------------

    async def _claims(self) -> None:
        """Claim what is due, as long as there is room."""
        await self.intake.ready.wait()
        while not self._stop.is_set():
            self._wake.clear()
            room = self.pool.room
            if room <= 0:
                await self._pause(1.0)
                continue
            try:
                claims, due = await self.queue.claims(self.instance, room)
            except BusUnreachable:
                await self._return()
                continue
            except ConfigurationError:
                raise
            except PromptDockError as error:  # a key of the wrong kind
                log.get().error("Nothing can be claimed", why=str(error))
                await self._pause(1.0)
                continue
            for claim in claims:
                self.pool.take(claim)
            # What comes is heard of, or handed over; a look without that is for what was said and not heard.
            await self._pause(min(_IDLE, self.queue.lease_ms / 6000) if due < 0 else min(1.0, due / 1000))

    async def _return(self) -> None:
        """Redis was away: renew what is ours, and let others do so, before what is due is claimed."""
        while True:
            try:
                await self.pool.renew()
                break
            except BusUnreachable:
                await asyncio.sleep(random.uniform(0.02, 0.3))
        await asyncio.sleep(min(1.0, self.queue.lease_ms / 4000))

    async def _pause(self, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        await self._wake.wait()
        timer.cancel()

    def _ended(self) -> None:
        """A turn is over: there is room again."""
        self._wake.set()
        self._duties.turn_ended()

    async def _leases(self) -> None:
        while True:
            await asyncio.sleep(self.queue.lease_ms / 3000)
            with contextlib.suppress(PromptDockError):  # a lease that cannot be renewed runs out
                await self.pool.renew()

    # -- what comes ------------------------------------------------------------------------------------------

    def _on_wake_up(self, channel: str, content: dict[str, Any] | None) -> None:
        if content is not None and content.get("id") == self.handoff.last_id:
            return  # it is in our hands already, and there is nothing more to look for
        if channel not in (self._dispatcher.status, self._dispatcher.clusters):  # a heartbeat brings no work
            self._wake.set()
        self._dispatcher.heard(channel, content)

    def _met(self, cluster: str, asks: bool) -> None:
        """A heartbeat. That of another cluster is answered, so that a newcomer hears of us and leaves."""
        if not cluster or cluster == self.resources.cluster:
            return
        if not self._foreign.is_set():
            self._foreign.set()
            log.get().error("Another cluster uses the same channels on this Redis", cluster=cluster)
        if asks:
            self.spawn(self._answer())

    async def _answer(self) -> None:
        with contextlib.suppress(PromptDockError):  # our next heartbeat says it as well
            await self.resources.connection.presence.announce(self.resources.cluster)

    # -- presence and health ---------------------------------------------------------------------------------

    async def _presence(self) -> None:
        failing = False
        while True:
            shown = self._shown()
            try:
                await self._beat_presence()
                failing = False
            except PromptDockError as error:
                if not failing:
                    log.get().warning("No heartbeat", why=str(error))
                failing = True
            for _ in range(round(_BEATS / _CHANGE)):
                await asyncio.sleep(_CHANGE)
                if not failing and self._shown() != shown:
                    break

    def _shown(self) -> object:
        """What is told at once when it changes: what runs, and what its duties say of that."""
        turns = {(running.turn, bool(running.turn.activity.waits)) for running in self.pool}
        return turns, self._duties.shown()

    def _status(self) -> str:
        if self._stop.is_set():
            return "draining"
        waits = [bool(running.turn.activity.waits) for running in self.pool]
        return "idle" if not waits else "waiting" if all(waits) else "working"

    async def _beat_presence(self) -> None:
        current = [running.turn.id for running in self.pool]
        await self.resources.connection.presence.beat(
            self.profile.name,
            self.instance,
            {
                "status": self._status(),
                "current": ", ".join(current[:3]) or None,
                "doing": [running.turn.activity.card() for running in self.pool],
                "turns": len(current),
                "takes": self.profile.turns,
                "queue": await self.queue.size(),
                "uptime": round(time.monotonic() - self._since, 1),
                "started": self._started,
                **self._duties.facts(),
                "cluster": self.resources.cluster,
                "pid": os.getpid(),
                "memory": _memory(),
            },
        )

    async def _drain(self) -> None:
        """No new work; what runs may end, what does not is handed over at its last step."""
        log.get().info(f"{self.profile.called} draining", turns=len(self.pool))
        with contextlib.suppress(PromptDockError):
            await self.handoff.close()
            await self._beat_presence()
        await self.pool.give_over(self._patience)
        with contextlib.suppress(PromptDockError, TimeoutError):
            async with asyncio.timeout(DRAIN / 4):
                await self._duties.hand_over()
        log.get().info(f"{self.profile.called} stopped")


def _memory() -> int:
    """Bytes of memory that this process holds."""
    try:
        resident = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # no Linux
        import psutil

        return int(psutil.Process().memory_info().rss)
    return resident * os.sysconf("SC_PAGE_SIZE")
