"""One person's conversation: what was said, what is awaited, and what comes."""

from __future__ import annotations

import asyncio
import contextlib
import textwrap
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from uuid import uuid4

from gateways.terminal import reopening
from gateways.terminal.attention import Attention
from gateways.terminal.requests import Requests
from gateways.terminal.screen import Screen, words
from gateways.terminal.watch import Watch
from shared.bus.decisions import decision as decides
from shared.bus.decisions import hedged, named
from shared.bus.messages import CLOSING, Output, default_session
from shared.client import Client
from shared.client.feed import Feed
from shared.client.local.typed import runnable
from shared.client.text.safe import line, safe
from shared.client.text.stream import Stream
from shared.client.types import Sent
from shared.client.views import pending, questions, status
from shared.client.views.permissions import approvals
from shared.client.views.tasks.progress import TurnProgress
from shared.errors import BadMessage, PromptDockError

_QUOTED = 60  # characters of what was said before
_WRITTEN = 8  # lines of the live area at most
_SETTLE = 0.5  # seconds that the last events may come behind the answer


@dataclass
class Spent:
    """What this chat has used up so far."""

    turns: int = 0
    input: int = 0
    output: int = 0
    cost: float = 0.0

    def add(self, usage: dict[str, object]) -> None:
        """One more turn."""
        self.turns += 1
        self.input += int(str(usage.get("input") or 0))
        self.output += int(str(usage.get("output") or 0))
        self.cost += float(str(usage.get("cost") or 0))


class Conversation:
    """An async context manager: while it is open, what comes is printed."""

    def __init__(self, client: Client, screen: Screen, user: str, named: str | None) -> None:
        self.client, self.screen, self.user = client, screen, user
        self.spent = Spent()
        self._begin(named)

    def _begin(self, named: str | None) -> None:
        self.named = named
        self.work = TurnProgress()
        self.stream = Stream(self.screen.write, self.screen.note)
        self.awaited: dict[str, float] = {}  # message id -> when it was sent
        self.said: dict[str, str] = {}  # what is awaited, in words
        self.question: Output | None = None
        self.idle = asyncio.Event()  # nothing is awaited, or a person is
        self.requests = Requests(self.client, self.screen, self.user, self.session, self._rest)
        self.watch = Watch(self.client, self.screen, self.user, self.session, self.work)
        self.attention = Attention(self.client, self.screen, self.user, self._put)
        self._known: set[str] = set()  # cursors of what was shown as this chat opened
        self._done = asyncio.Event()
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def session(self) -> str:
        """The session that the messages belong to."""
        return self.named or default_session(self.user)

    @property
    def working(self) -> bool:
        """Whether something is awaited, or a turn of this session runs."""
        return bool(self.awaited or self.work.running)

    @property
    def waited(self) -> float:
        """Seconds since the oldest message that is awaited."""
        return time.monotonic() - min(self.awaited.values()) if self.awaited else 0.0

    async def __aenter__(self) -> Conversation:
        mark = await self.client.mark(self.session)
        feed = await self._stack.enter_async_context(self.client.outputs())
        self.idle.set()
        await self._reopen()  # before anything new is shown: what was earlier stands above what is later
        for work in (
            self._outputs(feed),
            self._events(mark),
            self.watch.run(),
            self.attention.run(),
            self.attention.hear(),
        ):
            task = asyncio.create_task(work)
            task.add_done_callback(self._ended)
            self._tasks.append(task)
        return self

    async def __aexit__(self, *_error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    async def go(self, session: str) -> None:
        """Leave this conversation, whose turn goes on, and open another one here."""
        await self.client.mark(session)  # where it cannot be opened, this one stays
        await self.__aexit__()
        before = self.watch
        self._begin(None if session == default_session(self.user) else session)
        self.watch.model, self.watch.away = before.model, before.away
        await self.__aenter__()

    def _rest(self) -> None:
        """Nothing is awaited, or a person is: then the next line may be read."""
        if self.awaited and not self.requests.open:
            self.idle.clear()
        else:
            self.idle.set()

    def _put(self) -> list[str]:
        return [*self.requests.open, *([self.question.id] if self.question else [])]

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            self.screen.error(
                f"This chat cannot hear Chatter any more: {error}. Leave with /quit and come back."
            )
            self.awaited.clear()
            self.idle.set()

    async def _reopen(self) -> None:
        for entry in await reopening.entries(self.client, self.session, self.user):
            for note in entry.notes:
                self.screen.note(note)
            if entry.output and entry.output.status == "awaiting_approval":
                self.requests.put(entry.output)
            elif entry.output:
                self.screen.answer(entry.output)
                self.question = entry.output if entry.output.status == "awaiting_input" else self.question
            if entry.heard:
                self._known.add(entry.heard.cursor)
                self.client.shown(entry.heard)

    # -- the person ------------------------------------------------------------------------------------------

    async def say(self, text: str) -> None:
        """Send the person's words; a bare number answers a request for permission, or a question's option."""
        if self.requests.open and (said := decides(approvals.worded(text))):
            await self.requests.decide(*said, named(approvals.worded(text)))
            return
        if self._names_nothing(text):
            return
        replied, self.question = self.question, None
        if replied and replied.options:
            text = questions.chosen(text, replied.options)
        message_id = str(uuid4())
        before = next(
            (self.said[one] for one in self.awaited), "another message" if self.work.running else ""
        )
        self.awaited[message_id], self.said[message_id] = time.monotonic(), text
        self.idle.clear()
        try:
            sent = await self.client.say(
                text,
                self.user,
                self.named,
                message_id=message_id,
                in_reply_to=replied.id if replied else None,
                source="terminal",
            )
        except PromptDockError as error:
            self._close(message_id)
            self.screen.error(str(error))
            return
        if unread := await self._unread(sent):
            self.screen.note(runnable(unread))
        elif self.requests.open and not decides(text):
            if text.rstrip().endswith("?"):  # it may be about the request: there is all that is known of it
                for asked in self.requests.open.values():
                    self.screen.answer(asked)
            lasts = any(approvals.lasts(asked.approval) for asked in self.requests.open.values())
            how = "yes, always or no, or 1, 2 or 3" if lasts else "yes or no, or 1 or 3"
            unclear = "no clear yes or no, so nothing is allowed yet: " if hedged(text) else ""
            self.screen.note(
                f"{unclear}this waits behind the request above, and is answered when you have answered that: {how}"
            )
            self.idle.set()
        elif before or (sent.waiting and (before := await self._behind(message_id))):
            self.screen.note(f"this waits behind: {line(before, _QUOTED)}")

    async def _behind(self, message_id: str) -> str:
        """What was said here by another program, and has not ended."""
        with contextlib.suppress(PromptDockError):
            return await pending.behind(self.client, self.session, message_id)
        return ""

    def _names_nothing(self, text: str) -> bool:
        """Whether it is a number that answers nothing that is put here; then what is put stays, and is put again."""
        options = (self.question.options if self.question else None) or []
        there, put = questions.beyond(text, len(options)), [self.question] if self.question else []
        if self.requests.open and (there or not options):
            there, put = approvals.beyond(text, self.requests.open), [*self.requests.open.values()]
        if not there:
            return False
        self.screen.note(f"{line(text, _QUOTED)} is none of the numbers: {there}")
        for output in put:
            self.screen.options(output)
        return True

    async def _unread(self, sent: Sent) -> str:
        with contextlib.suppress(PromptDockError):
            return await status.unread(self.client, sent)
        return ""

    async def stop(self, agent: str = "") -> None:
        """End the turn that runs, or what one agent does for it."""
        consult = next((one for one in self.work.open if one.agent == agent), None)
        if agent and consult is None:
            self.screen.note(f"nothing is asked of {agent} now{self.watch.works(agent)}")
            return
        try:
            request = consult.request_id if consult else None
            turn = self.work.turn if self.work.running and not request else None
            first = None if request else await pending.first(self.client, self.session)
            if first and not turn and first["state"] == "running":
                turn = str(first["id"])
            await self.client.stop(self.user, self.session, turn, request)
            told = f"stopping {agent or self._what(turn, first)} …"
            if turn and self.requests.of([self.work.turn]):
                told += " its request for permission is withdrawn with it: nothing is allowed"
            self.screen.note(told)
        except (PromptDockError, BadMessage) as error:
            self.screen.error(str(error))

    def _what(self, turn: str | None, first: pending.PendingRow | None) -> str:
        """The turn that is stopped, in the words that opened it, and those of this chat that wait behind it."""
        named = first if first and turn in (None, first["id"]) else None
        said = self.said.get(turn or "") or (str(named["content"]) if named else "")
        if not said:
            return "the turn"
        behind = [words for id, words in self.said.items() if id != (turn or (named or {}).get("id"))]
        more = f"; then comes: {line(behind[0], _QUOTED)}" if behind else ""
        return f"what was asked with: {line(said, _QUOTED)}{more}"

    # -- what comes ------------------------------------------------------------------------------------------

    async def _outputs(self, feed: Feed) -> None:
        async for item in feed:
            output = item.output
            if output.user_id == self.user and output.status != "progress":
                self.attention.stale.set()
            if output.via and item.cursor in self._known:
                continue  # it was shown as this chat opened
            foreign = not output.session_id and output.user_id == self.user
            if output.session_id == self.session or foreign:
                if output.user_id == self.user:  # in a conversation of several each is told their own
                    self.client.shown(item)
                await self._show(output, foreign)

    async def _show(self, output: Output, foreign: bool) -> None:
        if output.status == "progress":
            await self.stream.settle()
            self.screen.note(words(output))
        elif output.status == "task_update":
            self.screen.answer(output)
        elif output.status == "awaiting_approval":
            self.requests.put(output)
        elif output.status in CLOSING:
            # Of a turn that began before this chat did: since its person let it go on.
            moments = self.requests.decided(output.answers) | self.awaited
            since = min((moments[one] for one in output.answers if one in moments), default=None)
            await self._settle(output)
            self._closing(output, since)
            if self._watched(output):
                self.work.end()
            await self.requests.ended(output.answers)
            answered = output.answers or ([*self.awaited][:1] if foreign else [])
            for message_id in answered:
                self._close(message_id)

    def _watched(self, output: Output) -> bool:
        """Whether the work that is known is that of this output."""
        return self.work.turn in output.answers

    async def _settle(self, output: Output) -> None:
        """The events of a turn may come a moment behind its answer."""
        if not output.usage:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE):
                while self.work.running or not self._watched(output):
                    self._done.clear()
                    await self._done.wait()

    def _closing(self, output: Output, since: float | None) -> None:
        streamed = self.screen.streams and self.stream.of(output)
        if streamed:
            self.stream.end(output)
        if output.status == "error":
            self.screen.error(words(output))
        elif streamed:
            self.screen.options(output)
        else:
            self.screen.answer(output)
        self.question = output if output.status == "awaiting_input" else None
        if output.usage:
            self.spent.add(output.usage)
            seconds = None if since is None else time.monotonic() - since
            self.screen.note(self.work.footer(output, seconds))

    def _close(self, message_id: str) -> None:
        self.awaited.pop(message_id, None)
        self.said.pop(message_id, None)
        if not self.awaited:
            self.idle.set()

    async def _events(self, mark: str) -> None:
        async for event in self.client.events(self.session, mark):
            self.stream.take(event)
            consult = self.work.take(event.kind, event.payload)
            if event.kind in ("done", "error"):
                self._done.set()
            if consult is not None and consult.state in ("timeout", "offline"):
                self.screen.note(consult.told(0.0))

    def being_written(self, width: int, most: int) -> list[str]:
        """The last lines of the block that is being written."""
        text = safe(self.stream.open).expandtabs(4).strip("\n")
        lines = [part for row in text.split("\n") for part in textwrap.wrap(row, width) or [""]]
        return lines[-max(1, min(most, _WRITTEN)) :] if text.strip() else []
