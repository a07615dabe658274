"""One worker process: join the bus, keep presence, claim turns, hand them on, drain."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import signal
import socket
import time
from collections.abc import Coroutine
from typing import Any, Protocol

from shared import faults, log
from shared.bus import messages
from shared.bus.keys import BROADCAST, CHATTER, HUMAN_INPUT, STATUS
from shared.errors import (
    BadMessage,
    BusUnreachable,
    ConfigurationError,
    Fenced,
    ModelError,
    PromptDockError,
)
from shared.store.records import Log
from shared.turns.archive import Apply, Archive
from shared.turns.desk import Claim, Ending
from shared.turns.ear import Ear
from shared.turns.turn import Turn
from shared.worker import reply
from shared.worker.parts import Parts, redis_warnings
from shared.worker.profile import Profile

DEATHS, FAILURES = 3, 5  # deliveries after which a message goes to the dead letters
DRAIN = 20.0  # seconds in which a worker hands over
_BEATS = 4.0  # seconds between heartbeats of presence
_FOREIGN = 0.25  # seconds in which another cluster answers our first heartbeat


class Runner(Protocol):
    """One turn in the hands of whoever carries it out."""

    @property
    def deadline(self) -> int: ...
    async def run(self) -> None: ...
    async def stopped(self) -> None: ...
    async def failed(self, error: PromptDockError, dead: str = "") -> None: ...


class Make(Protocol):
    """Makes the runner of a turn."""

    def __call__(self, turn: Turn) -> Runner: ...


class Worker:
    """A replica of one agent."""

    def __init__(self, parts: Parts, profile: Profile, make: Make, appliers: dict[str, Apply]) -> None:
        self.parts, self.profile, self._make = parts, profile, make
        self.instance = f"{socket.gethostname()[:20]}-{os.getpid()}-{secrets.token_hex(2)}"
        self.desk = parts.desk(profile.name)
        self.archive = Archive(parts.bus, parts.names, parts.store, profile.name, self.instance, appliers)
        self._turns: dict[str, tuple[Turn, asyncio.Task[None], Runner | None]] = {}
        self._stopping: set[str] = set()
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._spawned: set[asyncio.Task[None]] = set()
        self._logs: list[Log] = []
        self._started = messages.now()
        self._since = time.monotonic()
        channels = [parts.names.agent(profile.name)]
        if profile.name == CHATTER:
            channels.insert(0, parts.names.channel(HUMAN_INPUT))
        self._heard = channels
        self._broadcast = parts.names.channel(BROADCAST)
        self._status = parts.names.channel(STATUS)
        self._foreign = asyncio.Event()  # another cluster speaks on our channels
        self.ear = Ear(self.desk, [*channels, self._broadcast, self._status], self._on_bell, plain=channels)

    async def run(self) -> None:
        """Work until told to stop."""
        called = self.profile.called
        log.add_sink(self._keep_log)
        for warning in await redis_warnings(self.parts.bus):
            log.get().warning(warning)
        services = [asyncio.create_task(work, name=name) for name, work in self._services().items()]
        try:
            await self._first_of(self.ear.ready.wait(), services, 30)
            log.get().info(f"Subscribed to: {', '.join(self._heard)}")
            await self._beat_presence()
            await self._alone()
            log.get().info(f"{called} ready", model=self.parts.model.name, demo=self.parts.model.demo)
            await self._first_of(self._stop.wait(), services, None)
            await self._drain()
        finally:
            for task in [*services, *self._spawned, *(task for _, task, _ in self._turns.values())]:
                task.cancel()
            await asyncio.gather(*services, *self._spawned, return_exceptions=True)
            log.remove_sink(self._keep_log)
            with contextlib.suppress(PromptDockError, TimeoutError):
                async with asyncio.timeout(3):
                    await self.parts.presence.leave(self.profile.name, self.instance)

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
        self._stop.set()
        self._wake.set()

    def _services(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {
            "ear": self.ear.run(),
            "claims": self._claims(),
            "leases": self._leases(),
            "presence": self._presence(),
            "archive": self.archive.run(),
            "logs": self._ship_logs(),
            "memory": self._memory(),
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

    # -- turns -----------------------------------------------------------------------------------------------

    async def _claims(self) -> None:
        """Claim what is due, as long as there is room."""
        await self.ear.ready.wait()
        while not self._stop.is_set():
            self._wake.clear()
            room = self.profile.turns - len(self._turns)
            if room <= 0:
                await self._pause(1.0)
                continue
            try:
                claims, due = await self.desk.claims(self.instance, room)
            except BusUnreachable:
                await self._return()
                continue
            for claim in claims:
                self._start(claim)
            await self._pause(1.0 if due < 0 else min(1.0, due / 1000))

    async def _return(self) -> None:
        """Redis was away: renew what is ours, and let others do so, before what is due is claimed."""
        while True:
            try:
                await self._renew()
                break
            except BusUnreachable:
                await asyncio.sleep(random.uniform(0.02, 0.3))
        await asyncio.sleep(min(1.0, self.desk.lease_ms / 4000))

    async def _pause(self, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        await self._wake.wait()
        timer.cancel()

    def _start(self, claim: Claim) -> None:
        held = self._turns.get(claim.session)
        if held is not None and held[0].regain(claim):
            return
        if held is not None:
            held[0].lost.set()
            held[1].cancel()
        turn = Turn(self.desk, claim)
        task = asyncio.create_task(self._carry(turn), name=f"turn {turn.id}")
        self._turns[turn.session] = (turn, task, None)
        task.add_done_callback(lambda done: self._ended(turn, done))

    def _ended(self, turn: Turn, task: asyncio.Task[None]) -> None:
        if self._turns.get(turn.session, (None,))[0] is turn:
            del self._turns[turn.session]
        self._stopping.discard(turn.session)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()):
            log.get().error("A turn ended badly", turn=turn.id, why=str(error))

    async def _carry(self, turn: Turn) -> None:
        with log.bound_contextvars(session=turn.session, turn=turn.id):
            try:
                runner = self._make(turn)
            except BadMessage as error:
                log.get().error("A message cannot be read", why=str(error))
                await turn.finish(Ending(dead=f"malformed: {error.what}"))
                return
            if (entry := self._turns.get(turn.session)) and entry[0] is turn:
                self._turns[turn.session] = (turn, entry[1], runner)
            try:
                await self._attempt(turn, runner)
            except Fenced:
                log.get().warning("The turn went to another worker")
            except asyncio.CancelledError:
                await self._cancelled(turn, runner)
            except BusUnreachable as error:
                log.get().warning("Redis is away; the turn will be claimed again", why=str(error))
            except ModelError as error:
                await runner.failed(error)
            except Exception as error:
                await self._failed(turn, runner, error)

    async def _attempt(self, turn: Turn, runner: Runner) -> None:
        if turn.tries > DEATHS:
            why = f"{DEATHS} workers died while they answered it"
            await runner.failed(_poison(why), dead="poison")
        elif turn.fails >= FAILURES:
            await runner.failed(_poison(f"{FAILURES} tries to answer it failed"), dead="poison")
        elif 0 < runner.deadline < turn.claimed_at and not turn.records:
            late = PromptDockError(
                "The message is too old to be answered",
                "its deadline passed while it waited",
                "send it again",
            )
            await runner.failed(late, dead="expired")
        else:
            faults.point("claimed", turn.id)
            await runner.run()
        faults.point("finished", turn.id)

    async def _cancelled(self, turn: Turn, runner: Runner) -> None:
        """By the person, by a lost lease, or by a drain: each ends the turn in its own way."""
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        if turn.lost.is_set() or turn.ended:
            return
        if self._stop.is_set():
            await turn.release()
        else:
            await turn.step()  # the word that stopped it is answered with it
            await runner.stopped()

    async def _failed(self, turn: Turn, runner: Runner, error: Exception) -> None:
        log.get().exception("A turn failed", tries=turn.tries, fails=turn.fails)
        if turn.fails + 1 >= FAILURES or turn.ended:
            with contextlib.suppress(Fenced):
                await runner.failed(
                    _poison(f"it failed {FAILURES} times, last with {type(error).__name__}"), dead="poison"
                )
            return
        delay = int(200 * 2**turn.fails * (0.5 + secrets.randbelow(1000) / 1000))
        await turn.release(delay, failed=True)

    # -- what comes ------------------------------------------------------------------------------------------

    def _on_bell(self, channel: str, content: dict[str, Any] | None) -> None:
        """Something came: look for what to claim, or let the turn look that it concerns."""
        self._wake.set()
        if not channel:  # we listen again after a gap: each turn looks for what it may have missed
            for turn, _, _ in self._turns.values():
                turn.bell.set()
        if not content:
            return
        if channel == self._broadcast:
            self._command(content)
        elif channel == self._status:
            self._met(content)
        elif channel == self.desk.bell:
            self._cancel(str(content.get("data", "")))
        elif content.get("type") in (*messages.ANSWERS, "progress"):
            self._answered(content)
        elif content.get("type") == "cancel":
            payload = content.get("payload")
            self._cancel(str(payload.get("request_id", "")) if isinstance(payload, dict) else "")
        elif content.get("type") == "task" and len(self._turns) >= self.profile.turns:
            self.spawn(self._busy(content))
        elif channel.endswith(HUMAN_INPUT):
            self._joined(content)

    def _met(self, card: dict[str, Any]) -> None:
        """A heartbeat. One of another cluster is answered, so that a newcomer hears of us and leaves."""
        cluster = card.get("cluster")
        if cluster and cluster != self.parts.cluster and not self._foreign.is_set():
            self._foreign.set()
            log.get().error("Another cluster uses the same channels on this Redis", cluster=str(cluster))
            self.spawn(self._beat_presence())

    def _answered(self, content: dict[str, Any]) -> None:
        payload = content.get("payload")
        request = payload.get("request_id") if isinstance(payload, dict) else None
        for turn, _, runner in self._turns.values():
            if isinstance(request, str) and request.startswith(f"{turn.id}."):
                if content["type"] == "progress":
                    hear = getattr(runner, "progress", None)
                    if hear is not None and isinstance(payload, dict):
                        hear(request, str(payload.get("message", ""))[:500])
                else:
                    turn.bell.set()

    def _joined(self, content: dict[str, Any]) -> None:
        try:
            message = messages.human(content)
        except BadMessage:
            return
        entry = self._turns.get(message.session)
        if entry is None:
            return
        turn, task, runner = entry
        turn.bell.set()
        if isinstance(message, messages.Stop) and runner is not None:
            if message.request_id and (stop := getattr(runner, "stop_request", None)):
                stop(message.request_id)
            elif not message.request_id:
                task.cancel()

    def _cancel(self, request: str) -> None:
        entry = self._turns.get(request)
        if entry is not None:
            entry[1].cancel()

    async def _busy(self, content: dict[str, Any]) -> None:
        """Whoever sends a task to a busy worker is told that it waits."""
        with contextlib.suppress(PromptDockError):
            waiting = max(1, await self.desk.size() - len(self._turns))
            told = f"{self.profile.called} is busy: the task is number {waiting} in its queue"
            await reply.progress(self.parts, self.profile.name, messages.agent(content), told)

    def _command(self, content: dict[str, Any]) -> None:
        if content.get("command") != "shutdown":
            return
        roles = content.get("roles")
        wanted = self.parts.settings.approver_roles
        if not content.get("user_id") or (
            wanted and not (isinstance(roles, list) and wanted & set(map(str, roles)))
        ):
            log.get().warning("A shutdown was refused", why="the sender is no approver")
            return
        log.get().info("Told to shut down", by=str(content["user_id"]))
        self.stop()

    # -- services --------------------------------------------------------------------------------------------

    async def _leases(self) -> None:
        """Renew what is ours, and stop at once what is not any more."""
        while True:
            await asyncio.sleep(self.desk.lease_ms / 3000)
            with contextlib.suppress(BusUnreachable):
                await self._renew()

    async def _renew(self) -> None:
        held = {session: turn.epoch for session, (turn, _, _) in self._turns.items() if not turn.ended}
        for session in await self.desk.beat(held):
            entry = self._turns.get(session)
            if entry and entry[0].epoch == held[session] and not entry[0].ended:
                entry[0].lost.set()
                entry[1].cancel()

    async def _presence(self) -> None:
        failing = False
        while True:
            try:
                await self._beat_presence()
                failing = False
            except PromptDockError as error:
                if not failing:
                    log.get().warning("No heartbeat", why=str(error))
                failing = True
            await asyncio.sleep(_BEATS)

    async def _beat_presence(self) -> None:
        current = [turn.id for turn, _, _ in self._turns.values()]
        await self.parts.presence.beat(
            self.profile.name,
            self.instance,
            {
                "status": "draining" if self._stop.is_set() else "working" if current else "idle",
                "current": ", ".join(current[:3]) or None,
                "turns": len(current),
                "queue": await self.desk.size(),
                "uptime": round(time.monotonic() - self._since, 1),
                "started": self._started,
                "about": self.profile.description,
                "kind": self.profile.kind,
                "model": self.parts.model.name,
                "demo": self.parts.model.demo,
                "store": self.parts.store.name,
                "sandbox": self.parts.sandbox.mode,
                "home": self.parts.home,
                "cluster": self.parts.cluster,
                "pid": os.getpid(),
            },
        )

    async def _memory(self) -> None:
        """Watch how full Redis is: at 70 % a warning, over 85 % nothing new is accepted."""
        warned = False
        while True:
            with contextlib.suppress(PromptDockError):
                info = (await self.parts.bus.command("INFO", "memory")).decode()
                figures = dict(line.split(":", 1) for line in info.split("\r\n") if ":" in line)
                limit = int(figures.get("maxmemory", 0))
                share = int(figures["used_memory"]) / limit if limit else 0.0
                if share > 0.85:
                    await self.parts.bus.command("SET", f"{self.desk.prefix}full", f"{share:.2f}", "EX", 10)
                if share > 0.7 and not warned:
                    log.get().warning("Redis is filling up", used=f"{share:.0%}")
                warned = share > 0.7
            await asyncio.sleep(5)

    def _keep_log(self, level: str, message: str, fields: dict[str, Any]) -> None:
        if len(self._logs) < 1000:
            plain = {
                key: value if isinstance(value, str | int | float | bool) else str(value)
                for key, value in fields.items()
            }
            name = "error" if level in ("exception", "critical") else level
            row = Log(agent=self.profile.name, level=name, message=message[:2000], metadata=plain)
            self._logs.append(row)

    async def _ship_logs(self) -> None:
        while True:
            await asyncio.sleep(1)
            await self._flush_logs()

    async def _flush_logs(self) -> None:
        rows, self._logs = self._logs, []
        try:
            await self.archive.put(rows)
        except PromptDockError:
            self._logs = [*rows, *self._logs][:1000]

    async def _drain(self) -> None:
        """No new work; what runs may end, what does not is handed over at its last step."""
        log.get().info(f"{self.profile.called} draining", turns=len(self._turns))
        with contextlib.suppress(PromptDockError):
            await self._beat_presence()
        running = [task for _, task, _ in self._turns.values()]
        if running:
            await asyncio.wait(running, timeout=DRAIN / 4)
        for task in running:
            if not task.done():
                task.cancel()
        if running:
            await asyncio.wait(running, timeout=DRAIN / 2)
        with contextlib.suppress(PromptDockError, TimeoutError):
            async with asyncio.timeout(DRAIN / 4):
                await self._flush_logs()
                await self.archive.drain()
        log.get().info(f"{self.profile.called} stopped")

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


def _poison(why: str) -> PromptDockError:
    return PromptDockError(
        "The message could not be answered", why, "it is kept in the dead letters: promptdock dead list"
    )
