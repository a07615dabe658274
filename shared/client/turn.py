"""One message and all that comes of it, as events that end in every case: what a stream of an answer stands on.

`accepted` first, then what the turn does (docs/wire.md, live events), at the end exactly one `done` or `error`. Chunks
that are joined are the answer, once, also where a worker dies and another one goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from shared.bus.messages import CLOSING, Output
from shared.client.client import Client
from shared.client.fanout import OUTPUTS, Fanout, Moment, Reader
from shared.errors import PromptDockError

_QUIET = 1.0  # seconds of one look
_SETTLE = 0.5  # seconds that the last events may come behind the answer
_PASSED = frozenset({"thinking", "tool_call", "tool_result", "consult", "waiting"})  # as the turn tells them
_BESIDE = {"awaiting_approval": "approval", "task_update": "task_update", "progress": "progress"}


@dataclass(frozen=True)
class Asking:
    """A person's words, and what shall be different for this answer. No session: a new one."""

    text: str
    user_id: str
    session: str = field(default_factory=lambda: str(uuid4()))
    id: str = field(default_factory=lambda: str(uuid4()))
    roles: Sequence[str] = ()
    source: str = "web"
    model: str | None = None
    profile_id: str | None = None
    temperature: float | None = None
    use_memory: bool = True
    mode: Literal["simple", "full"] = "simple"
    project_id: str | None = None
    force: bool = False
    images: Sequence[dict[str, str]] = ()


@dataclass(frozen=True)
class TurnEvent:
    """One thing that the turn did; the payload is JSON."""

    kind: str
    payload: dict[str, Any]


@dataclass
class Joined:
    """The answer as the one who joins chunks has it: what is repeated by another worker is not told again."""

    _told: dict[int, str] = field(default_factory=dict)  # by the number of the model's answer
    _comes: dict[int, str] = field(default_factory=dict)  # the same, as it comes now
    _begun: bool = False

    @property
    def text(self) -> str:
        """Of the last answer, what was told."""
        return self._told[max(self._told)] if self._told else ""

    def again(self, part: int) -> None:
        """From this answer on it begins anew."""
        self._comes = {number: text for number, text in self._comes.items() if number < part}

    def add(self, part: int, words: str) -> list[TurnEvent]:
        """What is new of it; `restart` where what was told before is another text."""
        comes = self._comes[part] = self._comes.get(part, "") + words
        told = self._told.get(part, "")
        if told.startswith(comes):
            return []
        self._told[part] = comes
        if comes.startswith(told):
            return [self._chunk(comes[len(told) :], fresh=not told)]
        return [TurnEvent("restart", {}), self._chunk(comes, fresh=True)]

    def end(self, content: str) -> list[TurnEvent]:
        """What is left, now that the answer is whole."""
        last = max(self._told, default=1)
        if content.strip() and content.strip() not in self._told.get(last, ""):
            self._comes.pop(last, None)
            return self.add(last, content)
        return []

    def _chunk(self, words: str, fresh: bool) -> TurnEvent:
        """Answers between which the model used tools are paragraphs of their own."""
        apart = "\n\n" if fresh and self._begun else ""
        self._begun = True
        return TurnEvent("chunk", {"content": apart + words})


class _Turn:
    """What is known of the turn while it runs."""

    def __init__(self, question: Asking) -> None:
        self.question, self.joined = question, Joined()
        self.running, self.started = "", time.monotonic()
        self.closing: Output | None = None
        self.last: dict[str, Any] = {}  # the event with which the turn ended
        self.ends = 0.0  # when the last events are not awaited any more

    def take(self, moment: Moment) -> list[TurnEvent]:
        """What this adds."""
        if moment.output is not None:
            return self._heard(moment.output)
        if moment.topic != self.question.session:
            return []
        payload: dict[str, Any] = json.loads(moment.data)
        if moment.kind == "start":
            return self._start(payload)
        if self.running != self.question.id:
            return []  # of another message in this session
        if moment.kind == "chunk":
            return self.joined.add(int(payload.get("part") or 0), str(payload.get("content", "")))
        if moment.kind in ("done", "error"):
            self.running, self.last = "", payload
            return []
        if moment.kind == "waiting":  # for the provider, which is asked again
            self.joined.again(int(payload.get("part") or 0))
        return [TurnEvent(moment.kind, payload)] if moment.kind in _PASSED else []

    def _start(self, payload: dict[str, Any]) -> list[TurnEvent]:
        self.running = str(payload.get("turn_id", ""))
        if self.running != self.question.id:
            return []
        if not payload.get("again"):
            self.joined.again(0)
            return [TurnEvent("start", payload)]
        self.joined.again(0)
        said = payload.get("said")
        told = [self.joined.add(number, str(text)) for number, text in enumerate(said or [], 1)]
        return [event for events in told for event in events]

    def _heard(self, output: Output) -> list[TurnEvent]:
        asked = self.question
        foreign = not (output.via or output.in_reply_to or output.answers) and output.user_id == asked.user_id
        if asked.id not in (output.in_reply_to, *output.answers) and not foreign:
            return []
        if output.status in CLOSING:
            self.closing = output
            self.ends = time.monotonic() + _SETTLE
            return []
        told = output.model_dump(exclude_none=True, exclude={"via", "sig", "v"})
        return [TurnEvent(_BESIDE.get(output.status, "progress"), told)]

    @property
    def over(self) -> bool:
        """Whether all is here that comes."""
        if self.closing is None:
            return False
        whole = self.last.get("turn_id") in self.closing.answers
        return whole or self.closing.usage is None or time.monotonic() > self.ends

    def end(self) -> list[TurnEvent]:
        """The rest of the answer, and the one event that ends it."""
        closing, asked = self.closing, self.question
        assert closing is not None
        turn = str(self.last.get("turn_id") or asked.id)
        ids = {"turn_id": turn, "task_id": turn, "session_id": closing.session_id or asked.session}
        if closing.status == "error":
            return [TurnEvent("error", {**ids, "error": closing.content, "code": closing.code or 1})]
        took = int((time.monotonic() - self.started) * 1000)
        thinking = str(self.last.get("thinking") or "")
        more = {"question": closing.question, "options": closing.options, "demo": closing.demo}
        told = {
            **ids,
            "answer": closing.content,
            "thinking": thinking,
            "has_thinking": bool(thinking),
            "model": closing.model,
            "usage": closing.usage,
            "cost": (closing.usage or {}).get("cost", 0.0),
            "total_time_ms": took,
            "status": closing.status,
            **({"stopped": True} if self.last.get("stopped") else {}),
            **{name: value for name, value in more.items() if value},
        }
        return [*self.joined.end(closing.content), TurnEvent("done", told)]


async def converse(client: Client, hub: Fanout, question: Asking) -> AsyncGenerator[TurnEvent, None]:
    """Say it, and tell what comes of it. Whatever keeps it from being taken is raised before the first event.

    An event `idle` says that nothing happened in a while: a line that carries this stays open by it.
    """

    def sees(moment: Moment) -> bool:
        return moment.topic in (question.session, OUTPUTS)

    async with hub.reading({OUTPUTS: "", question.session: ""}, sees) as reader:
        sent = await client.say(
            question.text,
            question.user_id,
            question.session,
            message_id=question.id,
            source=question.source,
            force=question.force,
            roles=list(question.roles) or None,
            model=question.model,
            profile_id=question.profile_id,
            temperature=question.temperature,
            use_memory=None if question.use_memory else False,
            mode=None if question.mode == "simple" else question.mode,
            project_id=question.project_id,
            images=list(question.images) or None,
        )
        ids = {"session_id": question.session, "message_id": question.id, "task_id": question.id}
        yield TurnEvent("accepted", {**ids, "outcome": sent.outcome, "waiting": sent.waiting})
        async for event in _until_closed(client, _Turn(question), reader):
            yield event


async def going_on(
    client: Client, hub: Fanout, asking: Asking, act: Callable[[], Awaitable[object]]
) -> AsyncGenerator[TurnEvent, None]:
    """What comes of a turn that waits, after an act that lets it go on; `asking.id` is the turn's."""

    def sees(moment: Moment) -> bool:
        return moment.topic in (asking.session, OUTPUTS)

    async with hub.reading({OUTPUTS: "", asking.session: ""}, sees) as reader:
        await act()
        ids = {"session_id": asking.session, "message_id": asking.id, "task_id": asking.id}
        yield TurnEvent("accepted", {**ids, "outcome": "known", "waiting": 0})
        turn = _Turn(asking)
        turn.running = asking.id
        async for event in _until_closed(client, turn, reader):
            yield event


async def _until_closed(client: Client, turn: _Turn, reader: Reader) -> AsyncGenerator[TurnEvent, None]:
    patience = client.settings.conversation_timeout_ms / 1000
    while not turn.over:
        moments = await reader.take(_SETTLE / 5 if turn.closing else _QUIET)
        if moments is None or time.monotonic() - turn.started > patience:
            yield _left(turn, ended=moments is None)
            return
        for moment in moments:
            for event in turn.take(moment):
                yield event
        if not moments:
            yield TurnEvent("idle", {})
    for event in turn.end():
        yield event


def _left(turn: _Turn, ended: bool) -> TurnEvent:
    """The turn goes on, and its answer is kept: only we do not wait for it."""
    why = "this server ends, or the reader was too slow" if ended else "CONVERSATION_TIMEOUT has passed"
    error = PromptDockError(
        "the answer was not awaited to its end", why, "it goes on: look into its session for it"
    )
    ids = {"turn_id": turn.question.id, "task_id": turn.question.id, "session_id": turn.question.session}
    return TurnEvent("error", {**ids, "error": error.told(), "code": 5, "goes_on": True})
