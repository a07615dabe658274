"""The turns that a worker holds: each carried to its end, handed on, or given up when its lease is lost."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from shared import failpoints, log
from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT
from shared.errors import (
    BadMessage,
    BusUnreachable,
    Busy,
    Conflict,
    Fenced,
    PromptDockError,
    TimedOut,
    Unreachable,
)
from shared.turns import outbox, routing
from shared.turns.queue import Claim, Completion, Queue
from shared.turns.turn import Turn
from shared.worker import incidents

DEATHS, FAILURES = 3, 5  # deliveries after which a message goes to the dead letters
_PASSING = (Unreachable, Busy, Conflict, TimedOut)  # another try may find it gone


class Runner(Protocol):
    """One turn in the hands of whoever carries it out."""

    @property
    def deadline(self) -> int: ...
    async def run(self) -> None: ...
    async def stopped(self) -> None: ...
    async def failed(self, error: PromptDockError, dead: str = "") -> None: ...


@runtime_checkable
class Asker(Protocol):
    """A runner that asks other agents, and tells its own asker how far they are."""

    async def progress(self, request_id: str, text: str) -> None: ...


@runtime_checkable
class Timed(Protocol):
    """A runner that is ended when its message is worth nothing any more; others see to that themselves."""

    @property
    def limit(self) -> int: ...


class Make(Protocol):
    """Makes the runner of a turn."""

    def __call__(self, turn: Turn) -> Runner: ...


@dataclass
class RunningTurn:
    """One turn, the task that carries it, and its runner once there is one."""

    turn: Turn
    task: asyncio.Task[None]
    runner: Runner | None = None
    ending: bool = False  # it was stopped, and says so now


class Pool:
    """All turns of one worker, by session, at most `turns`. `ended` is called whenever there is room again."""

    def __init__(self, queue: Queue, make: Make, ended: Callable[[], None], turns: int) -> None:
        self.queue, self._make, self._room_again, self._turns = queue, make, ended, turns
        self.draining = False  # what is cancelled from now on is handed over, not stopped
        self._running: dict[str, RunningTurn] = {}
        self._saying: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[RunningTurn]:
        return iter(list(self._running.values()))

    def of(self, session: str) -> RunningTurn | None:
        """The running turn of a session."""
        return self._running.get(session)

    def take(self, claim: Claim) -> None:
        """Carry out what was claimed; what is held already of it goes on under the new lease."""
        failpoints.point("claim read", claim.entries[0].id if claim.entries else "")
        running = self._running.get(claim.session)
        if running is not None and not running.turn.closes_before(claim):
            self._acquit(claim.session)
            if running.turn.regain(claim):
                return
            running.turn.lost.set()
            running.task.cancel()
        turn = Turn(self.queue, claim)
        task = asyncio.create_task(self._carry(turn), name=f"turn {turn.id}")
        self._running[turn.session] = RunningTurn(turn, task)
        task.add_done_callback(lambda done: self._ended(turn, done))

    def given(self, claim: Claim) -> None:
        """Carry out what nobody had to claim; what may not be taken any more goes back at once."""
        if self.draining or self.suspects:
            self._say(self.queue.release(claim.session, claim.epoch))
        else:
            self.take(claim)

    @property
    def suspects(self) -> bool:
        """Whether one of them may kill us: nothing else is claimed beside it, which would be to blame too."""
        return any(running.turn.tries >= DEATHS for running in self)

    @property
    def room(self) -> int:
        """How many more it may hold."""
        return 0 if self.suspects else self._turns - len(self)

    @property
    def idle(self) -> bool:
        """Whether the turn that ends now is all that it holds, and the next may begin before its task is over."""
        return len(self) == 1 < self._turns and not self.draining

    def _acquit(self, session: str) -> None:
        """We lost a lease and live: only slow, so that its message is no poison."""
        self._say(self.queue.forgive_delivery(session))

    def _say(self, call: Coroutine[Any, Any, None]) -> None:
        """Tell Redis beside what runs; where it cannot be told, the lease runs out."""

        async def say() -> None:
            with contextlib.suppress(PromptDockError):
                await call

        task = asyncio.create_task(say())
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)

    def stop(self, session: str) -> None:
        """End a turn for the person who wants it ended."""
        if (running := self._running.get(session)) and not running.ending:
            running.task.cancel()

    async def renew(self) -> None:
        """Renew all leases, and stop at once what is not ours any more."""
        epochs = {
            name: running.turn.epoch for name, running in self._running.items() if not running.turn.ended
        }
        asked = time.monotonic()
        gone = await self.queue.beat(epochs)
        for running in self:
            if running.turn.session not in gone and running.turn.epoch == epochs.get(running.turn.session):
                running.turn.renewed = max(running.turn.renewed, asked)
        for session in gone:
            lost = self._running.get(session)
            if lost and lost.turn.epoch == epochs[session] and not lost.turn.ended:
                lost.turn.lost.set()
                lost.task.cancel()
                self._acquit(session)

    async def give_over(self, patience: float) -> None:
        """Let what runs come to its end, and hand over at its last step what does not."""
        self.draining = True
        tasks = [running.task for running in self]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=patience)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=2 * patience)

    def drop(self) -> None:
        """Let go of everything at once: others claim it when the leases end."""
        for running in self:
            running.task.cancel()

    def _ended(self, turn: Turn, task: asyncio.Task[None]) -> None:
        running = self._running.get(turn.session)
        if running is not None and running.turn is turn:
            del self._running[turn.session]
        self._room_again()
        if not task.cancelled() and (error := task.exception()):
            log.get().error("A turn ended badly", turn=turn.id, why=str(error))

    async def _carry(self, turn: Turn) -> None:
        with log.bound_contextvars(session=turn.session, turn=turn.id):
            try:
                runner = self._make(turn)
            except Exception as error:  # whatever is in it
                await self._unreadable(turn, error)
                return
            if (running := self._running.get(turn.session)) and running.turn is turn:
                running.runner = runner
            try:
                await self._attempt(turn, runner)
            except Fenced:
                log.get().warning("The turn went to another worker")
                self._acquit(turn.session)
            except asyncio.CancelledError:
                await self._cancelled(turn, runner)
            except BusUnreachable as error:
                log.get().warning("Redis is away; the turn will be claimed again", why=str(error))
            except _PASSING as error:
                await self._failed(turn, runner, error)
            except PromptDockError as error:
                # It says what somebody has to do first: another try would end the same.
                await self._fail(runner, error)
            except Exception as error:
                await self._failed(turn, runner, error)

    async def _unreadable(self, turn: Turn, error: Exception) -> None:
        """Nobody can make anything of the message: it is buried, and its sender told, where one can be named."""
        what = error if isinstance(error, BadMessage) else BadMessage("the message cannot be understood")
        reason = routing.malformed(what) if isinstance(error, BadMessage) else outbox.reason("inbox", error)
        log.get().error("A message cannot be read", why=reason)
        names = self.queue.names
        told = (
            routing.dead(names, names.channel(HUMAN_INPUT), turn.given[0].data, what) if turn.given else None
        )
        with contextlib.suppress(Fenced):
            await turn.finish(
                Completion(
                    channel=names.channel(CHATTER_OUTPUT), output=told.refusal if told else "", dead=reason
                )
            )

    async def _attempt(self, turn: Turn, runner: Runner) -> None:
        if turn.spoiled:
            await self._fail(
                runner, _poison("the journal of its turn cannot be read"), dead="unreadable: journal"
            )
        elif turn.tries > DEATHS:
            why = f"{DEATHS} workers died while they answered it"
            await self._fail(runner, _poison(why), dead="poison")
        elif turn.fails >= FAILURES:
            await self._fail(runner, _poison(f"{FAILURES} tries to answer it failed"), dead="poison")
        elif 0 < runner.deadline < turn.claimed_at and not turn.records:
            late = PromptDockError(
                "The message is too old to be answered",
                "its deadline passed while it waited",
                "send it again",
            )
            await self._fail(runner, late, dead="expired")
        else:
            failpoints.point("claimed", turn.id)
            await self._in_time(turn, runner)
        failpoints.point("finished", turn.id)

    async def _in_time(self, turn: Turn, runner: Runner) -> None:
        """Run it to its deadline; while a person is asked for permission, time does not count."""
        limit = runner.limit if isinstance(runner, Timed) else 0
        try:
            async with asyncio.timeout(None) as clock:
                watch = asyncio.create_task(_watch(clock, turn, limit)) if limit > 0 else None
                try:
                    await runner.run()
                finally:
                    if watch is not None:
                        watch.cancel()
        except TimeoutError:
            if not clock.expired():
                raise
            fix = "send it again, in smaller pieces or with a later deadline"
            late = PromptDockError("The turn was ended at its deadline", "it was not answered by then", fix)
            await self._fail(runner, late)

    async def _fail(self, runner: Runner, error: PromptDockError, dead: str = "") -> None:
        """End the turn with an error; whoever reads the log finds the cause there."""
        incidents.turn_failed(self.queue.agent, error, dead)
        await runner.failed(error, dead)

    async def _cancelled(self, turn: Turn, runner: Runner) -> None:
        """By the person, by a lost lease, or by a drain: each ends the turn in its own way."""
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        if turn.lost.is_set() or turn.ended:
            return
        if self.draining:
            await turn.release()
        else:
            if running := self._running.get(turn.session):
                running.ending = running.turn is turn
            await turn.step()  # the word that stopped it is answered with it
            await runner.stopped()

    async def _failed(self, turn: Turn, runner: Runner, error: Exception) -> None:
        log.get().exception("A turn broke off", tries=turn.tries, fails=turn.fails)
        if turn.fails + 1 >= FAILURES or turn.ended:
            with contextlib.suppress(Fenced):
                why = f"it failed {FAILURES} times, last with {type(error).__name__}"
                await self._fail(runner, _poison(why), dead="poison")
            return
        delay = int(200 * 2**turn.fails * (0.5 + secrets.randbelow(1000) / 1000))
        await turn.release(delay, failed=True)


async def _watch(clock: asyncio.Timeout, turn: Turn, limit: int) -> None:
    while (left := limit + turn.records.waited_ms(turn.now()) - turn.now()) > 0:  # noqa: ASYNC110 - time moves on
        await asyncio.sleep(max(0.1, left / 1000))
    clock.reschedule(asyncio.get_running_loop().time())


def _poison(why: str) -> PromptDockError:
    return PromptDockError(
        "The message could not be answered", why, "it is kept in the dead letters: promptdock dead list"
    )
