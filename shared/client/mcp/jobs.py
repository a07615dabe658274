"""What was asked by a program and goes on whether it waits or not: answers of Chatter, consults of other agents.

Programs give a call a minute or less. So a question runs by itself, who asked waits for it a while, and may wait again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from uuid import uuid4

from shared.client.client import Client
from shared.client.fanout import Fanout
from shared.client.text.safe import line
from shared.client.turn import Asking, TurnEvent, converse
from shared.client.types import Card
from shared.client.views.permissions import approvals
from shared.errors import Busy, PromptDockError, UsageError

OnNote = Callable[[str], Awaitable[None]]
_KEPT = 200  # of a process; those that have ended go first
_RUNNING = 50
_LOOK = 2.0  # seconds between two looks whether a person is asked
_HOUR = 3600.0  # seconds that a consult may take
_NOTE = 200  # characters of a line of progress


@dataclass
class Job:
    """One question. `notes` are lines of progress, `approval` is what a person is asked for meanwhile."""

    id: str
    user_id: str
    session: str
    notes: list[str] = field(default_factory=list)
    approval: Card | None = None
    reply: Card = field(default_factory=dict)
    more: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def note(self, text: str) -> None:
        """Say how far it is."""
        if told := line(text)[:_NOTE]:
            self.notes.append(told)
            self.more.set()

    def ask(self, approval: Card | None) -> None:
        """A person is asked, or not any more."""
        if approval != self.approval:
            self.approval = approval
            self.more.set()

    @property
    def done(self) -> bool:
        return bool(self.reply)

    def card(self) -> Card:
        """As it stands."""
        told: Card = {"message_id": self.id, "session_id": self.session}
        if self.done:
            return told | self.reply
        again = f'call wait_for_answer with message_id "{self.id}"'
        if self.approval:
            does = "a person decides it here, or answer_approval does; then " + again
            return told | {"status": "awaiting_approval", "approval": self.approval, "next": does}
        return told | {"status": "working", "progress": self.notes[-1:], "next": f"it goes on: {again}"}


class Jobs:
    """All that was asked through this process; an async context manager that ends with it."""

    def __init__(self, client: Client, hub: Fanout) -> None:
        self._client, self._hub = client, hub
        self._jobs: dict[str, Job] = {}

    async def __aenter__(self) -> Jobs:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [job.task for job in self._jobs.values() if job.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def find(self, id: str, user_id: str) -> Job:
        """The question of that id; UsageError where this person asked none."""
        job = self._jobs.get(id)
        if job is None or job.user_id != user_id:
            raise UsageError(
                f"nothing was asked here under {id[:60]!r}", "", "give the message_id of an earlier answer"
            )
        return job

    def say(self, question: Asking) -> Job:
        """Words to Chatter."""
        return self._start(
            Job(question.id, question.user_id, question.session), lambda job: self._say(job, question)
        )

    def command(self, tool: str, arguments: Card, user_id: str, roles: tuple[str, ...]) -> Job:
        """A tool for a person, judged as an agent under `standard` would be: what that asks for is asked for."""
        id = str(uuid4())

        async def run(job: Job) -> None:
            job.reply = _result(
                await self._client.command(
                    *(tool, arguments, user_id),
                    patience=_HOUR,
                    profile="standard",
                    session=job.session,
                    roles=roles,
                )
            )

        return self._start(Job(id, user_id, f"mcp-{id}"), run)

    def _start(self, job: Job, run: Callable[[Job], Coroutine[Any, Any, None]]) -> Job:
        running = [one for one in self._jobs.values() if not one.done]
        if len(running) >= _RUNNING:
            raise Busy(f"{_RUNNING} questions of this program run", "", "wait for their answers first")
        ended = [id for id, one in self._jobs.items() if one.done]
        for id in ended[: max(0, len(self._jobs) - _KEPT)]:
            del self._jobs[id]
        self._jobs[job.id] = job
        job.task = asyncio.create_task(self._run(job, run))
        return job

    async def _run(self, job: Job, run: Callable[[Job], Coroutine[Any, Any, None]]) -> None:
        looks = asyncio.create_task(self._look(job))
        try:
            await run(job)
        except PromptDockError as error:
            job.reply = {"status": "error", "error": error.told()}
        finally:
            looks.cancel()
            await asyncio.gather(looks, return_exceptions=True)
            job.reply = job.reply or {"status": "error", "error": "it was not awaited to its end"}
            job.more.set()

    async def _look(self, job: Job) -> None:
        """Whether a person is asked for permission in its session."""
        while True:
            await asyncio.sleep(_LOOK)
            with contextlib.suppress(PromptDockError):
                waiting = await approvals.mine(self._client, job.user_id)
                mine = [one.shown() for one in waiting if one.session == job.session]
                job.ask(mine[0] if mine else None)

    async def _say(self, job: Job, question: Asking) -> None:
        async for event in converse(self._client, self._hub, question):
            _take(job, event)

    async def follow(self, job: Job, seconds: float, report: OnNote) -> Card:
        """Wait for its end, for a question to a person, or so long; what happens meanwhile is reported."""
        told, asked = len(job.notes), job.approval
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not job.done and (job.approval is None or job.approval == asked):
                    job.more.clear()
                    await job.more.wait()
                    for text in job.notes[told:]:
                        await report(text)
                    told = len(job.notes)
        return job.card()


def _take(job: Job, event: TurnEvent) -> None:
    payload = event.payload
    match event.kind:
        case "progress":
            job.note(str(payload.get("content") or ""))
        case "tool_call":
            job.note(f"Chatter uses {payload.get('tool')}")
        case "consult":
            job.note(f"{payload.get('agent')}: {payload.get('state')}")
        case "approval":
            approval = payload.get("approval")
            job.ask(approval if isinstance(approval, dict) else None)
        case "tool_result":
            job.ask(None)
        case "done":
            kept = ("answer", "status", "question", "options", "model", "demo", "stopped")
            job.reply = {name: payload[name] for name in kept if payload.get(name) is not None}
            job.reply.setdefault("status", "complete")
        case "error":
            job.reply = {"status": "error", "error": str(payload.get("error") or "it failed")}


def _result(result: Card) -> Card:
    failed = "error" in result
    return {
        "status": "error" if failed else "complete",
        **({} if failed else {"result": result}),
        **(result if failed else {}),
    }
