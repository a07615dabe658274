"""A scripted model, a journal that a crash can hit at any place, and tools that count how often they ran."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.loop import Call, Done, Limits, Outcome, Verdict, run
from shared.models.base import Answer, Delta, Model, OnDelta, Request, StopReason, Usage
from shared.turns.records import JournalRecord, NoteRecord, Records, read


class Crash(Exception):
    """The process died here."""


def text(words: str, stop: StopReason = "end_turn") -> Answer:
    """An answer of words alone."""
    return Answer(({"type": "text", "text": words},), stop, Usage(10, 5, cost=0.5), "m")


def calls(*names: str, words: str = "", stop: StopReason = "tool_use", **arguments: Any) -> Answer:
    """An answer that calls tools; their ids are their names."""
    said = [{"type": "text", "text": words}] if words else []
    asked = [{"type": "tool_use", "id": f"id-{n}", "name": n, "input": arguments} for n in names]
    return Answer((*said, *asked), stop, Usage(10, 5, cost=0.5), "m")


class Scripted(Model):
    """Answers in their order; which one is next follows from the request alone, as with a real one."""

    name = "scripted"

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers, self.asked = list(answers), list[Request]()

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        self.asked.append(copy.deepcopy(request))
        place = sum(message["role"] == "assistant" for message in request.messages)
        found: Answer = self.answers[min(place, len(self.answers) - 1)]
        if on_delta:
            on_delta(Delta("text", "piece"))
        return found

    async def models(self) -> list[str]:
        return ["m"]

    async def check(self) -> None:
        return


@dataclass
class Book:
    """A journal: what is in `stored` outlives a crash, as bytes, what was only kept does not."""

    stored: list[bytes] = field(default_factory=list)
    crash_at: Callable[[str], bool] = lambda _place: False
    records: Records = field(default_factory=Records)

    def reopen(self) -> Book:
        """As whoever claims the turn next finds it."""
        return Book(self.stored, records=read(self.stored))

    async def step(self, *records: JournalRecord, calls: Sequence[str] = ()) -> None:
        self.point("before")
        self.records.extend(records)
        self.stored.extend(record.to_bytes() for record in self.records[len(self.stored) :])
        self.point("after")

    def keep(self, record: JournalRecord) -> None:
        self.records.append(record)

    def point(self, place: str) -> None:
        if self.crash_at(place):
            raise Crash(place)


@dataclass
class World:
    """What a turn is run with, and what it did there."""

    answers: Sequence[Answer]
    book: Book = field(default_factory=Book)
    results: dict[str, Outcome] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)
    notes: list[tuple[int, str | NoteRecord]] = field(
        default_factory=list
    )  # after how many model calls, words
    limits: Limits = field(default_factory=Limits)
    together: frozenset[str] = frozenset()
    ran: list[Call] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = Scripted(self.answers)

    async def act(self, call: Call) -> Outcome:
        self.book.point("before act")
        self.ran.append(call)
        self.book.point("after act")
        return self.results.get(call.tool, Outcome({"did": call.tool}))

    async def permit(self, call: Call) -> Verdict:
        return Verdict(call.tool not in self.denied, self.denied.get(call.tool, ""))

    async def joined(self) -> list[str | NoteRecord]:
        came = [words for after, words in self.notes if after <= len(self.model.asked)]
        self.notes = [note for note in self.notes if note[0] > len(self.model.asked)]
        return came

    async def turn(self) -> Done:
        """Carry the turn to its end."""
        request = Request("m", ("system",), ({"role": "user", "content": "Hello"},))
        return await run(
            "t",
            request,
            journal=self.book,
            model=self.model,
            act=self.act,
            permit=self.permit,
            limits=self.limits,
            live=lambda kind, payload: self.events.append((kind, payload)),
            joined=self.joined,
            side_by_side=lambda tool: tool in self.together,
        )

    def sent(self, number: int = -1) -> list[tuple[str, list[str]]]:
        """The messages of one call of the model: role, and what each block is about."""
        return [(m["role"], [_about(b) for b in m["content"]]) for m in self.model.asked[number].messages]


def _about(block: dict[str, Any]) -> str:
    about = block.get("text") or block.get("name") or block.get("tool_use_id") or block["type"]
    return str(about)
