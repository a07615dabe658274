"""A conversation as it is read, whatever shows it: all that was said in it, the oldest first, in pages.

Most of it are the messages that passed. What came from another conversation or a file never passed here, and what is
old is deleted there first: both stand among the messages that the model reads. So a turn is told by the messages that
passed where there are any, else by those; what was loaded again where it had been said is told once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from shared.conversation.exchange import NOTED, RESTORED, SessionLine
from shared.memory.recall import said
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import ConversationMessage, Message

PERSON = "user"  # who a person is in the messages that passed
_SAID = ("message", "amend")
_ANSWERS = ("complete", "error", "awaiting_input", "task_update")
_KINDS = (*_SAID, *_ANSWERS, "awaiting_approval")
_AGAIN = ".away."  # in the id of what Chatter says again, which stands above already
_END = ".end"  # of the id of a turn's closing output
_ROUNDS = 20  # reads for one page, of which some hold calls of tools alone


@dataclass(frozen=True)
class HistoryItem:
    """One thing that is read; `row` is how it is kept."""

    row: Message | ConversationMessage

    @property
    def id(self) -> str:
        if isinstance(self.row, Message):
            return self.row.message_id or str(self.row.id)
        return self.row.source_message_id or str(self.row.id)

    @property
    def at(self) -> datetime:
        """When it was said: of what was copied, there."""
        if isinstance(self.row, ConversationMessage):
            return self.row.said_at or self.row.created_at
        return self.row.created_at

    @property
    def place(self) -> tuple[datetime, int]:
        """Where it stands: what was copied, where it was copied to."""
        return self.row.created_at, self.row.seq if isinstance(self.row, ConversationMessage) else 0

    @property
    def turn(self) -> str:
        """The turn that it closed, or stands in; "" of what a person said."""
        if isinstance(self.row, ConversationMessage):
            return self.row.turn_id or ""
        return "" if self.row.type in _SAID else (self.row.message_id or "").removesuffix(_END)

    @property
    def text(self) -> str:
        if isinstance(self.row, ConversationMessage):
            return said(self.row).strip()
        return str(self.row.payload.get("content") or "")

    @property
    def who(self) -> str:
        """The person's name, or the agent's."""
        row = self.row
        if isinstance(row, ConversationMessage):
            return row.user_name or row.user_id or (row.role if row.role != "assistant" else "")
        named = row.payload.get("user_name") if row.from_agent == PERSON else row.payload.get("agent")
        return str(named or (row.user_id if row.from_agent == PERSON else row.from_agent) or "")

    @property
    def by_person(self) -> bool:
        """Whether a person said it."""
        if isinstance(self.row, ConversationMessage):
            return self.row.role == "user" and bool(self.row.user_id) and not self.mark
        return self.row.from_agent == PERSON

    @property
    def mark(self) -> bool:
        """Whether it says what was done with the conversation: nobody said it."""
        if isinstance(self.row, ConversationMessage):
            return self.row.source == NOTED
        return self.row.type == "complete" and isinstance(self.row.payload.get("result"), dict)

    def line(self) -> SessionLine | None:
        """As a document holds it; None of what was not said: requests for permission, and marks."""
        row = self.row
        if self.mark or not self.text.strip():
            return None
        given: dict[str, Any] = {"content": self.text, "id": self.id, "timestamp": self.at}
        if isinstance(row, ConversationMessage):
            return SessionLine(role=row.role, user_name=row.user_name, **given)
        if row.type == "awaiting_approval":
            return None
        named = row.payload.get("user_name" if row.from_agent == PERSON else "agent")
        role: Literal["user", "assistant"] = "user" if row.from_agent == PERSON else "assistant"
        return SessionLine(role=role, user_name=str(named) if named else None, **given)


@dataclass(frozen=True)
class HistoryPage:
    """Some of it, the oldest first; `before` is where the page above it ends, None where it begins."""

    items: list[HistoryItem] = field(default_factory=list)
    before: datetime | None = None


async def page(store: Store, session: str, before: datetime | None, limit: int) -> HistoryPage:
    """The newest, or those before a moment: about `limit`, since what came in one moment is not parted."""
    found: list[HistoryItem] = []
    for _ in range(_ROUNDS):
        some, before = await _slice(store, session, before, limit)
        found = [*some, *found]
        if before is None or 2 * len(found) >= limit:
            break
    if len(found) > limit:
        before = found[-limit].row.created_at
        found = [item for item in found if item.row.created_at >= before]
        before = before if await _more(store, session, before) else None
    return HistoryPage(found, before)


async def whole(store: Store, session: str) -> list[HistoryItem]:
    """All of it."""
    passed = await store.select(Message, {"session_id": session, "type": ("in", list(_KINDS))})
    kept = await store.select(ConversationMessage, {"session_id": session})
    return _merged(passed, kept, {row.message_id for row in passed if row.message_id})


async def lines(store: Store, session: str) -> list[SessionLine]:
    """All that was said in it."""
    return [line for item in await whole(store, session) if (line := item.line())]


async def _slice(
    store: Store, session: str, before: datetime | None, limit: int
) -> tuple[list[HistoryItem], datetime | None]:
    where: dict[str, Any] = {"session_id": session} | ({"created_at": ("lt", before)} if before else {})
    told = where | {"type": ("in", list(_KINDS))}
    passed = await store.select(Message, told, order=[("created_at", "desc")], limit=limit)
    kept = await store.select(
        ConversationMessage, where, order=[("created_at", "desc"), ("seq", "desc")], limit=2 * limit
    )
    ends = [rows[-1].created_at for rows, most in ((passed, limit), (kept, 2 * limit)) if len(rows) == most]
    edge = max(ends) if ends else None
    if edge is not None:  # several may have come in one moment, which no cursor parts
        same = {"created_at": edge}
        passed = _whole_moment(passed, await store.select(Message, told | same), edge)
        kept = _whole_moment(kept, await store.select(ConversationMessage, where | same), edge)
        edge = edge if await _more(store, session, edge) else None
    known = {row.message_id for row in passed if row.message_id}
    known |= await _passed(store, session, {row.turn_id for row in kept if row.turn_id} - known)
    return _merged(passed, kept, known), edge


async def _more(store: Store, session: str, edge: datetime) -> bool:
    """Whether anything stands before a moment."""
    earlier: dict[str, Any] = {"session_id": session, "created_at": ("lt", edge)}
    told = earlier | {"type": ("in", list(_KINDS))}
    return bool(
        await store.select(Message, told, limit=1)
        or await store.select(ConversationMessage, earlier, limit=1)
    )


def _whole_moment(rows: list[Any], same: Iterable[Any], edge: datetime) -> list[Any]:
    later = [row for row in rows if row.created_at > edge]
    return [*later, *same]


async def _passed(store: Store, session: str, turns: Collection[str]) -> set[str]:
    """Ids of the messages that passed of these turns."""
    ids = sorted(id for turn in turns for id in (turn, f"{turn}{_END}"))
    found: set[str] = set()
    for at in range(0, len(ids), IN_LIMIT):
        where = {"session_id": session, "message_id": ("in", ids[at : at + IN_LIMIT])}
        found |= {row.message_id or "" for row in await store.select(Message, where)}
    return found


def _merged(
    passed: Sequence[Message], kept: Sequence[ConversationMessage], known: Collection[str]
) -> list[HistoryItem]:
    items = [HistoryItem(row) for row in passed if is_read(row)]
    for row in kept:
        turn = row.turn_id or ""
        told = turn in known or f"{turn}{_END}" in known
        if not told and not _is_aside(row) and said(row).strip():
            items.append(HistoryItem(row))
    return sorted(items, key=lambda item: item.place)


def _is_aside(row: ConversationMessage) -> bool:
    """Whether it stands there for the model alone."""
    return row.source == RESTORED or (row.source == NOTED and row.role == "assistant")


def is_read(row: Message) -> bool:
    """Whether people read it: what agents say to each other they do not, nor what is only said again."""
    again = _AGAIN in (row.message_id or "")
    return PERSON in (row.from_agent, row.to_agent) and row.type in _KINDS and not again
