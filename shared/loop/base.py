"""What the loop is handed, and what it gives back.

Above stands the worker, which hands over a journal (the durable turn), a model, `permit` (may this call run?)
and `act` (run it). The loop knows neither Redis, nor tools, nor the person who is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from shared.models.base import Block, Usage
from shared.turns.records import JournalRecord, NoteRecord, Records


class Journal(Protocol):
    """The turn's memory: what is in `records` happened; `step` makes it so, whatever dies afterwards."""

    records: Records

    async def step(self, *records: JournalRecord, calls: Sequence[str] = ()) -> None:
        """Append; Fenced when this turn is no longer ours."""

    def keep(self, record: JournalRecord) -> None:
        """Append what the next step, or the end of the turn, will store: one round trip for both."""


@dataclass(frozen=True)
class Call:
    """One tool call. `again`: its intent is in the journal but not its result, so it may have run."""

    id: str  # the model's
    key: str  # `<turn>.<step>.<call>`: the same on replay
    tool: str
    arguments: dict[str, Any]
    again: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a call came to: JSON for the model. `ends` closes the turn with a question to the person."""

    content: dict[str, Any]
    is_error: bool = False
    ends: dict[str, Any] | None = None
    foreign: bool = False  # it holds what others wrote


@dataclass(frozen=True)
class Verdict:
    """Permission for a call; a refusal is a result that the model reads."""

    allowed: bool
    reason: str = ""


Act = Callable[[Call], Awaitable[Outcome]]
AskPermission = Callable[[Call], Awaitable[Verdict]]
PublishEvent = Callable[[str, dict[str, Any]], None]  # kind of event, payload; must not block
# Words that came for this turn meanwhile; those with pictures beside them as a note.
JoinedMessages = Callable[[], Awaitable[Sequence[str | NoteRecord]]]


@dataclass(frozen=True)
class Limits:
    """Where a turn is told to come to an end. None is no limit."""

    rounds: int | None = 10
    errors_in_a_row: int = 5
    same_in_a_row: int = 3
    cost: float | None = None  # dollars
    tokens: int | None = None
    over: Callable[[], str] = lambda: ""  # the name of another budget, once it is spent


@dataclass(frozen=True)
class Done:
    """How the turn came out. `messages` are all that it adds to the conversation, in the provider's form."""

    text: str
    kind: Literal["answer", "question", "refusal"]
    thinking: str = ""
    question: dict[str, Any] | None = None
    messages: tuple[dict[str, Any], ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    demo: bool = False
    tools: tuple[str, ...] = ()
    last: tuple[Block, ...] = ()
    spent: str = ""  # the budget that ended the turn
    told: tuple[str, ...] = ()  # for the person: a model that was asked instead, a wish it could not heed
    limit: str = ""  # what else ended it before it had come to an end by itself
