"""The records of a turn's journal, and how they lie in Redis: JSON, compressed above 32 KiB.

A record says what happened, and is never changed. What it was given is what is written, under the same names and in
the order of its fields, so that a worker of the release before reads it too; a kind, or a field, that we do not know
stays what it is.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, InstanceOf

Record = dict[str, Any]  # an item of a conversation's window
COMPRESS_ABOVE = 32 * 1024
_PACKED = b"z"


def pack(record: Record) -> bytes:
    """A record as it lies in Redis."""
    data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return _PACKED + zlib.compress(data, 1) if len(data) > COMPRESS_ABOVE else data


def unpack(data: bytes) -> Record:
    """The record again."""
    value = json.loads(zlib.decompress(data[1:]) if data[:1] == _PACKED else data)
    if not isinstance(value, dict):
        raise ValueError("it is no record")
    return value


# As it is, whatever characters it holds: a model, or a file's name, may bring half a character.
AnyText = InstanceOf[str]
AnyObject = InstanceOf[dict[str, Any]]


class _Kind(BaseModel):
    """One kind of record; `at` is in milliseconds, where a kind has it."""

    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=(), defer_build=True)

    k: str

    @property
    def when(self) -> int:
        """When it happened; 0 where it does not say so."""
        return int(getattr(self, "at", 0))

    def fields(self) -> Record:
        """What it was given, by name."""
        given, extra = self.model_fields_set, self.model_extra or {}
        return {"k": self.k} | {
            name: value for name, value in (self.__dict__ | extra).items() if name in given and name != "k"
        }

    def to_bytes(self) -> bytes:
        """As it lies in Redis."""
        return pack(self.fields())


class PricedRecord(_Kind):
    """An answer of a model, whatever it was for."""

    at: int = 0
    content: list[AnyObject]
    stop: AnyText
    model: AnyText = ""
    demo: bool = False
    limit: AnyText = ""
    usage: tuple[int, int, int, int, float]  # input, output, read from a cache, written to one; dollars
    ms: int | None = None
    provider: AnyText = ""  # who gave it
    notes: list[AnyText] = []  # for the person: how it came about


class BoughtRecord(PricedRecord):
    """One that stands beside the turn, and goes to no model again; `text` says what it is."""

    k: Literal["bought"] = "bought"
    text: AnyText = ""


class ModelRecord(PricedRecord):
    """An answer of the model. `stop`: why it ended; `limit`: what ended an executor before its end."""

    k: Literal["model"] = "model"
    first: int = 0  # of a summary: the messages that it is of
    last: int = 0

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tools that it asks for."""
        return [block for block in self.content if block.get("type") == "tool_use"]

    @property
    def cut(self) -> bool:
        """Whether it was not whole."""
        return self.stop in ("max_tokens", "pause_turn")


class ResultRecord(_Kind):
    """What a call came to. `foreign`: others wrote what it holds; `ends`: the question that ends the turn."""

    k: Literal["result"] = "result"
    at: int = 0
    id: AnyText
    tool: AnyText
    arguments: AnyObject = {}
    content: AnyObject
    error: bool
    ms: int | None = None
    foreign: bool = False
    ends: AnyObject | None = None


class NoteRecord(_Kind):
    """Words for the model that came while the turn ran."""

    k: Literal["note"] = "note"
    text: AnyText
    images: list[AnyObject] = []  # blocks of pictures that came with them


class IntentRecord(_Kind):
    """A call that is about to run, and what it is about to do."""

    k: Literal["intent"] = "intent"
    call: AnyText
    does: AnyObject | None = None


class AskRecord(_Kind):
    """A person is asked for permission: `card` is the request as it is shown."""

    k: Literal["ask"] = "ask"
    at: int
    call: AnyText
    card: AnyObject

    @property
    def request(self) -> str:
        """The id of the request."""
        return str(self.card["id"])


class WaitsRecord(_Kind):
    """Whoever took the turn over waits for that permission again."""

    k: Literal["waits"] = "waits"
    at: int = 0
    call: AnyText


class DecidedRecord(_Kind):
    """A request was answered; one of a release that asked once for each call has no `card`, the request's id."""

    k: Literal["decided"] = "decided"
    at: int
    call: AnyText
    card: AnyText = ""
    how: Literal["allow_once", "always", "deny", "expired", "withdrawn"]
    by: AnyText = ""
    reason: AnyText = ""
    message: AnyText = ""


class CheckRecord(_Kind):
    """What the gate decided of a call: a row of the audit log."""

    k: Literal["check"] = "check"
    at: int
    call: AnyText
    action: AnyText
    decision: AnyText
    person: AnyText = ""
    profile: AnyText = ""
    detail: AnyObject = {}


class ForeignRecord(_Kind):
    """The mark of what others wrote, on what the turn was given."""

    k: Literal["foreign"] = "foreign"
    at: int = 0
    text: AnyText = ""
    whence: AnyText = ""


class SituationRecord(_Kind):
    """What held when the turn began."""

    k: Literal["situation"] = "situation"
    at: int = 0
    text: AnyText
    project: AnyText = ""


class BegunRecord(_Kind):
    """The work of a task begins."""

    k: Literal["begun"] = "begun"
    at: int


class FinalRecord(_Kind):
    """What the asker is answered."""

    k: Literal["final"] = "final"
    payload: AnyObject


class SettlesRecord(_Kind):
    """The turn's words answer the question of this task."""

    k: Literal["settles"] = "settles"
    task: AnyText


class QuestionRecord(_Kind):
    """A task asks its person."""

    k: Literal["question"] = "question"
    id: AnyText
    at: int
    asked: AnyText = ""


class AnsweredRecord(_Kind):
    """The person has answered it."""

    k: Literal["answered"] = "answered"
    id: AnyText
    by: AnyText = ""


class ChecksRecord(_Kind):
    """The checks that ran on a task's work, each with its output where it failed."""

    k: Literal["checks"] = "checks"
    at: int = 0
    ran: list[AnyObject]


class ConflictsRecord(_Kind):
    """The agent was told of conflicts that it left."""

    k: Literal["conflicts"] = "conflicts"
    files: list[AnyText] = []


class SessionRecord(_Kind):
    """The session of an executor that has sessions of its own."""

    k: Literal["session"] = "session"
    id: AnyText
    at: int = 0
    executor: AnyText = ""


class RememberedRecord(_Kind):
    """What was remembered for this turn: what it was looked for by, and each item with its score."""

    k: Literal["memory"] = "memory"
    at: int = 0
    text: AnyText = ""  # in a line
    query: AnyText = ""
    items: list[AnyObject] = []


class DrawingRecord(_Kind):
    """From what memories are drawn: rows of what was said, of `user`, until `last`, and of what was known."""

    k: Literal["drawing"] = "drawing"
    at: int = 0
    user: AnyText = ""
    project: AnyText = ""
    turns: list[AnyObject] = []
    known: list[AnyText] = []  # ids
    facts: list[AnyObject] = []
    origin: AnyObject = {}
    last: AnyText = ""  # a moment, ISO 8601


class PlanRecord(_Kind):
    """What was proposed as the steps of a turn in full mode, and by whom; nothing where nobody was asked."""

    k: Literal["plan"] = "plan"
    at: int = 0
    by: AnyText = ""
    steps: list[AnyText] = []


class StepRecord(_Kind):
    """A step of such a turn began; `of` is 0 for what comes after the planned ones."""

    k: Literal["step"] = "step"
    at: int = 0
    number: int
    of: int = 0
    title: AnyText = ""


class UnknownRecord(_Kind):
    """A kind that this release does not know."""


JournalRecord = (
    ModelRecord | BoughtRecord | ResultRecord | NoteRecord | IntentRecord | AskRecord | WaitsRecord | DecidedRecord
    | CheckRecord | ForeignRecord | SituationRecord | BegunRecord | FinalRecord | SettlesRecord | QuestionRecord
    | AnsweredRecord | ChecksRecord | ConflictsRecord | SessionRecord | RememberedRecord
    | DrawingRecord | PlanRecord | StepRecord | UnknownRecord
)  # fmt: skip
_KINDS: dict[str, type[JournalRecord]] = {
    kind.model_fields["k"].default: kind for kind in JournalRecord.__args__ if kind is not UnknownRecord
}
Kind = TypeVar("Kind", bound=_Kind)


def parse(value: Record) -> JournalRecord:
    """A record that was read; ValueError where it is none, or not whole."""
    kind = value.get("k")
    if not isinstance(kind, str):
        raise ValueError("a record does not say of which kind it is")
    return _KINDS.get(kind, UnknownRecord).model_validate(value)


def read(packed: Iterable[bytes]) -> Records:
    """A journal as it was written; ValueError where one of its records cannot be read."""
    return Records(parse(unpack(data)) for data in packed)


class Records(list[JournalRecord]):
    """A journal in order, and what is asked of it."""

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Its records of one kind."""
        return [record for record in self if isinstance(record, kind)]

    def first(self, kind: type[Kind]) -> Kind | None:
        """The oldest of a kind."""
        return next((record for record in self if isinstance(record, kind)), None)

    def last(self, kind: type[Kind]) -> Kind | None:
        """The newest of a kind."""
        return next((record for record in reversed(self) if isinstance(record, kind)), None)

    @property
    def answers(self) -> list[ModelRecord]:
        """What the model answered."""
        return self.of(ModelRecord)

    @property
    def priced(self) -> list[PricedRecord]:
        """All that models answered in it."""
        return self.of(PricedRecord)

    def results(self, tool: str = "") -> list[ResultRecord]:
        """What calls came to: all of them, or those of one tool."""
        return [record for record in self.of(ResultRecord) if tool in ("", record.tool)]

    def last_result(self, tool: str) -> dict[str, Any] | None:
        """What the newest call of this tool came to that did not fail."""
        found = (record.content for record in reversed(self.results(tool)) if not record.error)
        return next(found, None)

    @property
    def final(self) -> dict[str, Any] | None:
        """What the asker is answered, once that is known."""
        record = self.first(FinalRecord)
        return record.payload if record else None

    def check_of(self, call: str) -> CheckRecord | None:
        """What the gate decided of a call."""
        return next((record for record in self.of(CheckRecord) if record.call == call), None)

    # -- permission ------------------------------------------------------------------------------------------

    def asks(self, call: str = "") -> list[AskRecord]:
        """Its requests for permission, or those for one call: where things have changed since, it is asked again."""
        return [record for record in self.of(AskRecord) if call in ("", record.call)]

    def decisions(self) -> list[DecidedRecord]:
        """How they were answered."""
        return self.of(DecidedRecord)

    def decision(self, call: str, request: str) -> DecidedRecord | None:
        """How this request for that call was answered."""
        fitting = (d for d in self.decisions() if d.call == call and d.card in ("", request))
        return next(fitting, None)

    def pending(self) -> list[AskRecord]:
        """The requests that nobody has answered."""
        ends = self._ends()
        return [ask for ask in self.asks() if not ends.keys() & {ask.call, ask.request}]

    def waited_ms(self, now: int) -> int:
        """How long the turn has waited for people so far."""
        ends = self._ends()
        return sum(
            max(0, ends.get(ask.request, ends.get(ask.call, now)) - ask.at) for ask in self.of(AskRecord)
        )

    def _ends(self) -> dict[str, int]:
        """When which request was answered: by its id, or by its call."""
        return {record.card or record.call: record.at for record in self.decisions()}
