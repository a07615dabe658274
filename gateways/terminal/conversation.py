"""One person's conversation: what was said, what is awaited, what is being done right now."""

from __future__ import annotations

import asyncio
import contextlib
import textwrap
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import uuid4

from gateways.terminal import reopening
from gateways.terminal.screen import Screen, words
from shared.bus.messages import CLOSING, Output, default_session, hedged, named
from shared.bus.messages import decision as decides
from shared.client import Client
from shared.client.feed import Feed
from shared.client.local.typed import runnable
from shared.client.text.safe import line, safe
from shared.client.text.stream import Stream
from shared.client.types import Sent
from shared.client.views import inbox, models, pending, questions, status
from shared.client.views.permissions import approvals
from shared.client.views.status import Working
from shared.client.views.tasks.progress import ConsultProgress, TurnProgress
from shared.errors import BadMessage, BusUnreachable, PromptDockError

_LOOK = 2.0  # seconds between looks at an agent that was asked
_MISSED = 2  # looks in a row that find no Redis, after which that is said
_QUOTED = 60  # characters of what was said before
_WRITTEN = 8  # lines of the live area at most
_GREETED = 5  # lines about what waits, when a chat opens
_COUNTED = 30.0  # seconds between looks at what waits, where nothing is heard
_GATHERED = 0.5  # seconds for which changes are gathered
_SETTLED = 1.5  # seconds in which what a person decided has its effect
_SETTLE = 0.5  # seconds that the last events may come behind the answer
Decision = Literal["allow_once", "always", "deny"]


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


@dataclass
class Conversation:
    """An async context manager: while it is open, what comes is printed."""

    client: Client
    screen: Screen
    user: str
    named: str | None
    work: TurnProgress = field(default_factory=TurnProgress)
    stream: Stream = field(init=False)
    doing: list[tuple[Working, float]] = field(default_factory=list)  # tasks that run, and since when
    spent: Spent = field(default_factory=Spent)
    awaited: dict[str, float] = field(default_factory=dict)  # message id -> when it was sent
    said: dict[str, str] = field(default_factory=dict)  # what is awaited, in words
    model: str = ""  # that speaks, by its name
    chosen: str | None = None  # for this conversation; None as long as that is not known
    question: Output | None = None
    asks: dict[str, Output] = field(default_factory=dict)  # approval id -> the request for permission
    idle: asyncio.Event = field(default_factory=asyncio.Event)  # nothing is awaited, or a person is
    waiting: list[inbox.Item] = field(default_factory=list)  # for this person, in all conversations
    away: str = ""  # why Redis does not answer, where it does not
    _decided: dict[str, float] = field(default_factory=dict)  # turn -> when its request was answered here
    _missed: int = 0  # looks in a row at which it did not
    _stale: asyncio.Event = field(default_factory=asyncio.Event)  # what waits may have changed
    _known: set[str] = field(default_factory=set)  # cursors of what was shown as this chat opened
    _done: asyncio.Event = field(default_factory=asyncio.Event)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _silent: set[str] = field(default_factory=set)  # requests whose agent was reported as silent

    def __post_init__(self) -> None:
        self.stream = Stream(self.screen.write, self.screen.note)

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
            self._pulses(),
            self._counts(),
            self._changes(),
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
        named = None if session == default_session(self.user) else session
        fresh = Conversation(self.client, self.screen, self.user, named)
        kept = ("spent", "model", "away")
        vars(self).update({name: value for name, value in vars(fresh).items() if name not in kept})
        await self.__aenter__()

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
                self._put(entry.output)
            elif entry.output:
                self.screen.answer(entry.output)
                self.question = entry.output if entry.output.status == "awaiting_input" else self.question
            if entry.heard:
                self._known.add(entry.heard.cursor)
                self.client.shown(entry.heard)

    async def _greet(self) -> None:
        """What waits for this person, wherever it came from, but what was put just now; one line each."""
        await self.count()
        for told in inbox.lines(self.elsewhere, _GREETED):
            self.screen.note(runnable(told))

    @property
    def elsewhere(self) -> list[inbox.Item]:
        """What waits for this person and does not stand in this chat already."""
        put = [*self.asks, *([self.question.id] if self.question else [])]
        return [item for item in self.waiting if not any(name.startswith(item.id) for name in put)]

    async def count(self) -> None:
        """Look what waits for this person, as far as it can be known now."""
        self.waiting = await inbox.known(self.client, self.user)

    async def recall(self) -> None:
        """Put again what waits for this person's permission: it may have been asked while nobody was here."""
        with contextlib.suppress(PromptDockError):
            for output in await approvals.waiting(self.client, self.session, self.user):
                self._put(output)

    def _put(self, output: Output) -> None:
        """Show a request for permission, once."""
        name = approvals.request_id(output)
        if name not in self.asks:
            self.asks[name] = output
            self.screen.answer(output)
        self.idle.set()

    # -- the person ------------------------------------------------------------------------------------------

    async def say(self, text: str) -> None:
        """Send the person's words; a bare number answers a request for permission, or a question's option."""
        if self.asks and (said := decides(approvals.worded(text))):
            await self.decide(*said, named(approvals.worded(text)))
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
        elif self.asks and not decides(text):
            if text.rstrip().endswith("?"):  # it may be about the request: there is all that is known of it
                for asked in self.asks.values():
                    self.screen.answer(asked)
            unclear = "no clear yes or no, so nothing is allowed yet: " if hedged(text) else ""
            self.screen.note(
                f"{unclear}this waits behind the request above, and is answered when you have answered that: "
                "yes, always or no, or 1, 2 or 3"
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
        if self.asks and (there or not options):
            there, put = approvals.beyond(text, self.asks), [*self.asks.values()]
        if not there:
            return False
        self.screen.note(f"{line(text, _QUOTED)} is none of the numbers: {there}")
        for output in put:
            self.screen.options(output)
        return True

    async def decide(self, decision: Decision, reason: str = "", id: str = "") -> None:
        """Answer the one request for permission that was put, or the one whose id begins so."""
        if not self.asks:
            await self.recall()
            if not self.asks:
                self.screen.note("nobody waits for a permission in this conversation")
            return  # what was put only now was not read yet
        fitting = [name for name in self.asks if name.startswith(id)]
        if len(fitting) != 1:
            shown = ", ".join(name[: approvals.SHORT] for name in fitting or self.asks)
            self.screen.note(f"name the request: 1, 2 or 3 and its id ({shown})")
            return
        approval_id, asked = fitting[0], self.asks.pop(fitting[0])
        try:
            sent = await self.client.decide(
                approval_id, decision, self.user, self.session, reason=reason or None
            )
        except PromptDockError as error:
            self.asks[approval_id] = asked
            self.screen.error(str(error))
            return
        if asked.in_reply_to:
            self._decided[asked.in_reply_to] = time.monotonic()
        told = {"allow_once": "allowed once", "always": "always allowed", "deny": "denied"}[decision]
        self.screen.note(f"{told}, when Redis is back" if sent.outcome == "kept" else told)
        if self.awaited and not self.asks:
            self.idle.clear()

    async def _unread(self, sent: Sent) -> str:
        with contextlib.suppress(PromptDockError):
            return await status.unread(self.client, sent)
        return ""

    async def stop(self, agent: str = "") -> None:
        """End the turn that runs, or what one agent does for it."""
        consult = next((one for one in self.work.open if one.agent == agent), None)
        if agent and consult is None:
            self.screen.note(f"nothing is asked of {agent} now{self._works(agent)}")
            return
        try:
            request = consult.request_id if consult else None
            turn = self.work.turn if self.work.running and not request else None
            first = None if request else await pending.first(self.client, self.session)
            if first and not turn and first["state"] == "running":
                turn = str(first["id"])
            await self.client.stop(self.user, self.session, turn, request)
            told = f"stopping {agent or self._what(turn, first)} …"
            mine = [ask for ask in self.asks.values() if ask.in_reply_to == self.work.turn]
            if turn and mine:
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

    def _works(self, agent: str) -> str:
        """How the tasks of this conversation are stopped on which an agent works."""
        tasks = [one.activity.task for one, _ in self.doing if one.agent == agent]
        ends = " or ".join(f"promptdock tasks stop {task}" for task in tasks)
        return f"; it works on {', '.join(tasks)}: {runnable(ends)}" if tasks else ""

    # -- what comes ------------------------------------------------------------------------------------------

    async def _outputs(self, feed: Feed) -> None:
        async for item in feed:
            output = item.output
            if output.user_id == self.user and output.status != "progress":
                self._stale.set()
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
            self._put(output)
        elif output.status in CLOSING:
            # Of a turn that began before this chat did: since its person let it go on.
            moments = self._decided | self.awaited
            since = min((moments[one] for one in output.answers if one in moments), default=None)
            for one in output.answers:
                self._decided.pop(one, None)
            await self._settle(output)
            self._closing(output, since)
            if self._watched(output):
                self.work.end()
            for name, ask in [*self.asks.items()]:
                if ask.in_reply_to in output.answers:
                    await self._gone(name, ask)
            answered = output.answers or ([*self.awaited][:1] if foreign else [])
            for message_id in answered:
                self._close(message_id)

    async def _gone(self, name: str, ask: Output) -> None:
        """A request whose turn has ended: what became of it, where that was not decided here."""
        self.asks.pop(name, None)
        became = None
        with contextlib.suppress(PromptDockError):
            became = await approvals.became(self.client, name)
        told = became.told(self.user) if became else "withdrawn, because its turn ended"
        done = "" if became and became.allows else "; it was not done"
        self.screen.note(f"{approvals.does(ask, _QUOTED)}: {told}{done}")

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

    async def _pulses(self) -> None:
        """Look how those are who were asked, and who works on tasks of this conversation."""
        while True:
            await self._look()
            for consult in self.work.open:
                with contextlib.suppress(PromptDockError):
                    consult.pulse = await status.pulse(self.client, consult.agent, consult.request_id)
                    self._say_silent(consult)
            await asyncio.sleep(_LOOK)

    async def _speaks(self, cards: list[dict[str, Any]]) -> str:
        """The model that was chosen for this conversation, else Chatter's; the choice is read once, and then known."""
        if self.chosen is None:
            with contextlib.suppress(PromptDockError):
                self.chosen = await models.here(self.client, self.user, self.session)
        speaks = status.speaks(cards)
        return speaks if speaks in ("", "DEMO") else self.chosen or speaks

    async def _look(self) -> None:
        """Who is here, and who works on tasks of this conversation; where nobody can be seen, that is said once."""
        try:
            cards = await self.client.presence.here()
            self.model = await self._speaks(cards)
            doing = await status.doing(self.client, cards)
        except BusUnreachable:
            self._missed += 1
            if self._missed < _MISSED:  # it may come back at once
                return
            self.doing = []
            away, self.away = self.away, status.absence(self.client)
            if away != self.away:
                self.screen.note(f"{runnable(self.away)}; what you say is kept until it is back")
            return
        except PromptDockError:
            return
        ours = [one for one in doing if one.activity.session == self.session and one.activity.task]
        self.doing = [(one, time.monotonic() - one.seconds) for one in ours]
        if self.away:
            self.screen.note("the cluster is back")
        self._missed, self.away = 0, ""

    async def _counts(self) -> None:
        """Say once what waits, beside the chat, and count it again when something happened that may change it."""
        await self._greet()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_COUNTED):
                    await self._stale.wait()
            self._stale.clear()
            await asyncio.sleep(_GATHERED)  # much happens at once
            await self.count()

    async def _changes(self) -> None:
        loop = asyncio.get_running_loop()

        def changed() -> None:
            self._stale.set()
            loop.call_later(_SETTLED, self._stale.set)  # what was said now is settled a moment later

        with contextlib.suppress(PromptDockError):  # it is counted now and then, too
            await inbox.changes(self.client, changed)

    def _say_silent(self, consult: ConsultProgress) -> None:
        """Once for each request: an agent that does not say any more that it lives, and what can be done."""
        if consult.open and consult.silent(time.monotonic()) and consult.request_id not in self._silent:
            self._silent.add(consult.request_id)
            name = consult.agent
            self.screen.note(
                f"{name} gives no sign of life: wait, or /stop {name} goes on without it; then ask another"
            )

    def lines(self, width: int, most: int = 2) -> list[str]:
        """The consults that are open, each with how it is ended, and tasks that run; at most so many lines."""
        now = time.monotonic()
        told = [_told(one, now, width) for one in self.work.open]
        told += [f"  {replace(one, seconds=now - since).told(width - 2)}" for one, since in self.doing]
        return told if len(told) <= most else [*told[: most - 1], f"  … and {len(told) - most + 1} more"]

    def being_written(self, width: int, most: int) -> list[str]:
        """The last lines of the block that is being written."""
        text = safe(self.stream.open).expandtabs(4).strip("\n")
        lines = [part for row in text.split("\n") for part in textwrap.wrap(row, width) or [""]]
        return lines[-max(1, min(most, _WRITTEN)) :] if text.strip() else []


def _told(consult: ConsultProgress, now: float, width: int) -> str:
    end = f" · /stop {consult.agent}"
    return f"  {consult.told(now, max(20, width - len(end) - 3))}{end}"
