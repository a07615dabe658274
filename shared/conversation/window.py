"""The window: the newest messages of a session, cut only between turns: no tool result loses its call."""

from __future__ import annotations

from typing import Any

from shared.models import sight
from shared.models.base import ModelMessage
from shared.store.base import Store
from shared.store.origin import mark
from shared.store.records import ConversationMessage, Session
from shared.turns.records import Record

KEEP = 50  # messages
FOREIGN = "foreign"  # in each record; one of a release before has none
FLOOR = (
    "floor"  # in each record of a conversation that was cleared: the number behind which its window begins
)


def messages(window: list[Record]) -> list[ModelMessage]:
    """The window in the provider's form, with the newest of its pictures."""
    return sight.newest({"role": record["role"], "content": record["content"]} for record in window)


def surplus(window: list[Record], added: int, keep: int = KEEP) -> int:
    """How many of the oldest records go when `added` come: whole turns, until at most `keep` are left."""
    drop = 0
    while drop < len(window) and len(window) - drop + added > keep:
        turn = window[drop]["turn"]
        while drop < len(window) and window[drop]["turn"] == turn:
            drop += 1
    return drop


def record(
    role: str,
    content: list[dict[str, Any]],
    turn: str,
    seq: int,
    at: int,
    foreign: str = "",
    floor: int = 0,
    **source: Any,
) -> Record:
    """One message of the window; `foreign` is what the turn had read that others wrote, or one before it."""
    told = {key: value for key, value in source.items() if value is not None}
    fields = {"role": role, "content": content, "turn": turn, "seq": seq, "at": at}
    return {**fields, FOREIGN: foreign, **({FLOOR: floor} if floor else {}), **told}


def floor(window: list[Record]) -> int:
    """The number behind which a window begins since it was last cleared; 0 where it never was."""
    return int(window[-1].get(FLOOR, 0)) if window else 0


def provided(role: str, content: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """A message as providers take it: what neither side said, as a file may hold it, is a note for the model."""
    if role in ("user", "assistant"):
        return role, content
    return "user", [{"type": "text", "text": f"[{role}]"}, *content]


async def recall(store: Store, session: str, keep: int = KEEP) -> tuple[list[Record], int]:
    """The window as the Store has it, and the number of its last message (0 for a new session)."""
    known = await store.select(Session, {"key": session}, limit=1)
    where: dict[str, Any] = {"session_id": session}
    rows = await store.select(ConversationMessage, where, order=[("seq", "desc")], limit=2 * keep)
    if not rows:
        return [], 0
    rows.reverse()
    row_of = known[0] if known else Session(key=session)
    clear_at, begins, foreign = row_of.clear_at, row_of.clear_seq, mark(row_of)
    window = [
        record(
            *provided(row.role, row.content),
            row.turn_id or str(row.seq),
            row.seq,
            int(row.created_at.timestamp() * 1000),
            foreign,
            begins,
        )
        for row in rows
        if row.seq > begins and (clear_at is None or row.created_at > clear_at)
    ]
    if len(rows) == 2 * keep and window:  # the oldest turn may be cut
        first = window[0]["turn"]
        window = [item for item in window if item["turn"] != first]
    return window[surplus(window, 0, keep) :], rows[-1].seq
