"""A bridge: a command line as an agent. A request's text is its stdin, its stdout is the answer.

It takes requests as every worker does, from the agent's queue under a lease, one at a time: what was accepted
is answered once, and goes to another bridge of that name if this one dies. The command runs as whoever started
the bridge, with their environment but for what reaches the cluster itself; nothing else confines it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shared import log
from shared.bus import messages
from shared.bus.presence import PASSING, instance_of
from shared.client import post
from shared.client.client import Client
from shared.errors import BadMessage, BusUnreachable, Fenced, PromptDockError, UsageError
from shared.guard.processes import starts
from shared.guard.processes.plan import AGENTS
from shared.guard.processes.process import Finished, run
from shared.redaction import redacted
from shared.store.records import Message, Task, TaskResult, TurnRow
from shared.store.row import derived
from shared.tasks import states
from shared.turns import outbox, routing
from shared.turns.intake import Intake
from shared.turns.outbox import RowChange
from shared.turns.queue import Completion, Queue
from shared.turns.records import BegunRecord, FinalRecord
from shared.turns.signatures import Signatures
from shared.turns.turn import Turn

_BEATS = 4.0  # seconds between heartbeats
_PROGRESS = 10.0  # seconds after which the asker hears that it still runs
_ANSWER = 128 * 1024  # bytes of stdout that are the answer, head and tail
_TRIES = 3
# What reaches the cluster itself: a command has no use for it.
_KEPT_BACK = ("REDIS_", "SUPABASE_", "PROMPTDOCK_", "DISCORD_")


@dataclass(frozen=True)
class Bridged:
    """What is bridged: a name on the bus, a command for a shell, and how long it may take."""

    name: str
    command: str
    seconds: float = 600.0
    about: str = ""


# What a shell does by itself, or reads as part of its grammar: no program of that name need exist.
_SHELL = re.compile(
    r"[({!]|[A-Za-z_]\w*=|(?:if|for|while|until|case|cd|exec|eval|set|export|read|printf|echo|test|\[|:|\.|true|false"
    r"|trap|umask|ulimit|unset|shift|wait|command|type|alias|exit)(?:\s|$)"
)


def check(command: str) -> None:
    """UsageError where the command starts a program that there is not; what only a shell can tell is let be."""
    try:
        first = shlex.split(command, comments=True)[:1]
    except ValueError as error:
        raise UsageError("the command cannot be read", str(error), "close its quotes") from None
    if not first:
        raise UsageError("there is no command", "", 'give one with --exec "…"')
    if _SHELL.match(command.strip()) or set(first[0]) & set("$`*?~<>|&;"):
        return
    if shutil.which(first[0], path=starts.absolute(os.environ.get("PATH", os.defpath))) is None:
        there = Path(first[0]).exists()
        raise UsageError(
            f"there is no program {first[0]!r} to run",
            "the file cannot be executed" if there else "no such file, and no program of that name on PATH",
            f"chmod +x {first[0]}" if there else "install it, or give its full path with --exec",
        )


class Bridge:
    """One process of a bridged agent."""

    def __init__(self, client: Client, bridged: Bridged) -> None:
        self._client, self._bridged = client, bridged
        self._names, self._settings = client.names, client.settings
        self.instance = instance_of(os.getpid()) + secrets.token_hex(2)
        self._queue = Queue(client.bus, client.names, bridged.name, lease_ms=client.settings.lease_ms)
        self._channel = client.names.agent(bridged.name)
        self._wake, self._stopping = asyncio.Event(), asyncio.Event()
        self._turn: Turn | None = None
        self._work: asyncio.Task[None] | None = None
        self._since, self._started = time.monotonic(), messages.now()
        self._authority = Signatures(client.names, client.signer, client.settings.unsigned_may)
        self.intake = Intake(
            *(self._queue, [self._channel], self._heard), plain=[self._channel], signatures=self._authority
        )

    async def run(self) -> None:
        """Answer requests until told to stop; the one in hand is finished first, if it takes no longer than 20 s."""
        services = [asyncio.create_task(work) for work in (self.intake.run(), self._beats(), self._leases())]
        claims = asyncio.create_task(self._claims())
        try:
            stop = asyncio.create_task(self._stopping.wait())
            done, _ = await asyncio.wait([stop, claims, *services], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stop}:
                task.result()
            if self._work is not None and not self._work.done():
                await asyncio.wait([self._work], timeout=20)
        finally:
            for task in (*services, claims, *([self._work] if self._work else [])):
                task.cancel()
            await asyncio.gather(*services, claims, return_exceptions=True)
            with contextlib.suppress(PromptDockError, TimeoutError):
                async with asyncio.timeout(3):
                    if self._turn is not None:
                        await self._turn.release()
                    await self._client.presence.leave(self._bridged.name, self.instance)
                    if self._bridged.name not in AGENTS:
                        await self._client.presence.retire(self._bridged.name)

    def stop(self) -> None:
        """Take nothing more."""
        self._stopping.set()
        self._wake.set()

    def _heard(self, channel: str, content: dict[str, Any] | None) -> None:
        self._wake.set()
        if content is None or self._turn is None or self._work is None:
            return
        payload = content.get("payload")
        named = payload.get("request_id") if isinstance(payload, dict) else None
        ended = content.get("data") if channel == self._queue.wake_up else None
        cancels = content.get("type") == "cancel" and self._authority.cancels(
            channel, content, self._turn.given
        )
        if self._turn.session in (ended, named if cancels else None):
            self._work.cancel()

    # -- services --------------------------------------------------------------------------------------------

    async def _claims(self) -> None:
        await self.intake.ready.wait()
        log.get().info(f"{self._bridged.name} ready")
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                claims, due = await self._queue.claims(self.instance, 1)
            except BusUnreachable:
                await asyncio.sleep(0.3)
                continue
            for claim in claims:
                self._turn = Turn(self._queue, claim)
                self._work = asyncio.create_task(self._carry(self._turn))
                await asyncio.wait([self._work])
                self._turn = self._work = None
            if not claims:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1.0 if due < 0 else min(1.0, max(0.01, due / 1000))):
                        await self._wake.wait()

    async def _leases(self) -> None:
        while True:
            await asyncio.sleep(self._queue.lease_ms / 3000)
            turn = self._turn
            if turn is None or turn.ended:
                continue
            with contextlib.suppress(BusUnreachable):
                if await self._queue.beat({turn.session: turn.epoch}) and self._turn is turn:
                    turn.lost.set()
                    if self._work is not None:
                        self._work.cancel()

    async def _beats(self) -> None:
        await self.intake.ready.wait()  # what is sent to whoever has shown itself must be heard
        while True:
            turn = self._turn
            with contextlib.suppress(PromptDockError):
                await self._client.presence.beat(
                    self._bridged.name,
                    self.instance,
                    {
                        "status": "working" if turn else "idle",
                        "current": turn.id if turn else None,
                        "turns": int(turn is not None),
                        "queue": await self._queue.size(),
                        "uptime": round(time.monotonic() - self._since, 1),
                        "started": self._started,
                        "about": self._bridged.about or f"answers with: {self._bridged.command[:80]}",
                        "kind": PASSING,
                        "pid": os.getpid(),
                    },
                )
            await asyncio.sleep(_BEATS)

    # -- one request -----------------------------------------------------------------------------------------

    async def _carry(self, turn: Turn) -> None:
        try:
            request = messages.agent({**json.loads(turn.given[0].data), "id": turn.given[0].id})
        except BadMessage as error:
            await turn.finish(Completion(dead=routing.malformed(error)))
            return
        try:
            await self._answer(turn, request)
        except Fenced:
            log.get().warning("The request went to another bridge")
        except BusUnreachable as error:
            log.get().warning("Redis is away; the request will be taken up again", why=str(error))
        except asyncio.CancelledError:
            if turn.lost.is_set() or self._stopping.is_set():
                raise
            await self._close(turn, request, {"error": "cancelled", "status": "stopped"})

    async def _answer(self, turn: Turn, request: messages.AgentMessage) -> None:
        log.get().info(f"Received {request.type} from {request.sender}")
        kept = turn.records.final
        if kept is None:
            kept = await self._made(turn, request)
            await turn.step(FinalRecord(payload=kept))
        await self._close(turn, request, kept)

    async def _made(self, turn: Turn, request: messages.AgentMessage) -> dict[str, Any]:
        text = str(request.payload.get("question") or request.payload.get("command_file") or "")
        if request.type not in ("question", "task") or not text.strip():
            return {
                "error": f"{self._bridged.name} takes questions and tasks",
                "fix": "give question or command_file",
            }
        if turn.tries > _TRIES:
            return {"error": f"{_TRIES} bridges died while they answered it", "status": "failed"}
        if request.type == "task" and turn.records.first(BegunRecord):
            # A task may have done anything until then, and may not do it twice.
            return {
                "error": "the bridge died while the task ran; what it did is not known",
                "status": "failed",
            }
        await turn.step(BegunRecord(at=int(time.time() * 1000)))
        telling = asyncio.create_task(self._tell(request))
        try:
            done = await self._run(text, request)
        finally:
            telling.cancel()
        return _payload(request, done, self._bridged.seconds)

    async def _run(self, text: str, request: messages.AgentMessage) -> Finished:
        about = {"PROMPTDOCK_REQUEST": request.id, "PROMPTDOCK_SENDER": request.sender}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_KEPT_BACK)}
        return await run(
            ["/bin/sh", "-c", self._bridged.command], cwd=Path.cwd(), env={**kept, **about},
            timeout=self._bridged.seconds, limit=_ANSWER, error_limit=4000,
            stdin=text.encode("utf-8", "replace"),
        )  # fmt: skip

    async def _tell(self, request: messages.AgentMessage) -> None:
        begun = time.monotonic()
        while True:
            await asyncio.sleep(_PROGRESS)
            text = f"{self._bridged.name} still works, for {time.monotonic() - begun:.0f} s"
            with contextlib.suppress(PromptDockError):
                message = self._message(request, "progress", {"message": text})
                await post.publish(self._client.bus, self._names, f"agent:{request.sender}", message.fields())

    def _message(
        self, request: messages.AgentMessage, kind: messages.AgentType, payload: dict[str, Any]
    ) -> messages.AgentMessage:
        id = str(derived("answer", self._bridged.name, request.id, kind))
        payload = {"request_id": request.id, **payload}
        return messages.AgentMessage.outgoing(id, self._bridged.name, request.sender, kind, payload)

    async def _close(self, turn: Turn, request: messages.AgentMessage, payload: dict[str, Any]) -> None:
        """Deliver the answer, then close the request: a successor delivers the same one again, and it counts once."""
        task = await self._task(request) if request.type == "task" else None
        if task is not None and payload.get("status") == "completed" and states.to_review(task, ""):
            payload = payload | {"status": states.REVIEW}
        message = self._message(request, "error" if payload.get("error") else "response", payload)
        channel = f"agent:{request.sender}"
        sent = await post.post(
            self._client.bus, self._names, channel, message.fields(), self._settings.lease_ms
        )
        rows = self._rows(turn, request, payload, task) if task is not None else []
        if sent.outcome == "heard":  # what is only published passes no script that would note it
            rows.append(self._said(turn, request, message, channel))
        rows.append(self._ended(turn, request, payload, task))
        await turn.finish(Completion(rows=outbox.pack(rows)))
        log.get().info(f"Answered {request.sender}")

    async def _task(self, request: messages.AgentMessage) -> Task | None:
        """The task's row, as far as there is one."""
        try:
            store = await self._client.store()
            found = await store.select(Task, {"slug": str(request.payload.get("task_id") or "")}, limit=1)
        except PromptDockError as error:
            log.get().warning("The task's row cannot be read", why=str(error))
            return None
        return found[0] if found else None

    def _ended(
        self, turn: Turn, request: messages.AgentMessage, payload: dict[str, Any], task: Task | None
    ) -> TurnRow:
        """The turn, as whoever waits for its end in the Store looks for it."""
        failed = payload.get("error")
        return TurnRow(
            id=derived("turn", self._bridged.name, turn.id),
            turn_id=turn.id,
            agent=self._bridged.name,
            session_id=turn.session,
            request_id=request.id,
            task_id=task.id if task else None,
            state="stopped" if payload.get("status") == "stopped" else "error" if failed else "complete",
            epoch=turn.epoch,
            tries=turn.tries,
            error=str(failed) if failed else None,
            started_at=datetime.fromtimestamp(turn.claimed_at / 1000, UTC),
            ended_at=datetime.fromtimestamp((turn.claimed_at + turn.elapsed_ms()) / 1000, UTC),
        )

    def _said(
        self, turn: Turn, request: messages.AgentMessage, message: messages.AgentMessage, channel: str
    ) -> Message:
        return Message(
            id=derived("message", self._bridged.name, turn.id),
            message_id=message.id,
            from_agent=self._bridged.name,
            to_agent=request.sender,
            type=message.type,
            payload=redacted(message.payload),
            channel=self._names.channel(channel),
            session_id=turn.session,
            request_id=request.id,
        )

    def _rows(
        self, turn: Turn, request: messages.AgentMessage, payload: dict[str, Any], task: Task
    ) -> list[Any]:
        """What becomes of the task's row; the epoch of its assignment fences a bridge that lost it."""
        epoch = states.turn_epoch(request.payload.get("epoch"), turn.epoch)
        result = TaskResult(
            id=derived("task-result", turn.id), task_id=task.id, epoch=epoch, agent=self._bridged.name,
            summary=str(payload.get("summary", "")), error=str(payload.get("error") or ""),
        )  # fmt: skip
        done = ["completed", "needs_review" if payload.get("status") == states.REVIEW else "passed"]
        events = ["assigned"] if task.status == "READY" else []
        events += ["started", *(["failed"] if payload.get("error") else done)]
        return [result, *(_change(task, event, self._bridged.name, turn, epoch) for event in events)]


def _change(task: Task, event: str, agent: str, turn: Turn, epoch: int) -> RowChange:
    values = {"task": str(task.id), "event": event, "actor": agent, "key": turn.id}
    return RowChange("task", {**values, "epoch": epoch, "changes": {}})


def _payload(request: messages.AgentMessage, done: Finished, seconds: float) -> dict[str, Any]:
    """What a command's end is to the asker. What it says of itself is not verified by anybody."""
    card: dict[str, Any] = {"exit_code": done.exit_code, "ms": done.ms}
    if request.type == "task":
        card |= {
            "task_id": request.payload.get("task_id") or request.id,
            "title": request.payload.get("title"),
            "status": "completed" if done.ok else "timeout" if done.timed_out else "failed",
            "summary": done.stdout,
            "verified": "unverified",
        }
    else:
        card["answer"] = done.stdout
    if done.timed_out:
        return card | {"error": f"the command was ended after {seconds:g} s"}
    if not done.ok:
        return card | {
            "error": f"the command ended with exit code {done.exit_code}",
            "why": done.stderr[-1000:],
        }
    return card


async def serve(client: Client, bridged: Bridged, signals: Sequence[signal.Signals]) -> None:
    """Run a bridge until one of the signals comes."""
    bridge = Bridge(client, bridged)
    for number in signals:
        asyncio.get_running_loop().add_signal_handler(number, bridge.stop)
    await bridge.run()
