"""The window: the newest messages of a session, cut only between turns: no tool result loses its call."""

from __future__ import annotations

from typing import Any

from shared.models.base import ModelMessage
from shared.store.base import Store
from shared.store.origin import mark
from shared.store.records import ConversationMessage, Session
from shared.turns.records import Record

KEEP = 50  # messages
FOREIGN = "foreign"  # in each record; one of a release before has none


def messages(window: list[Record]) -> list[ModelMessage]:
    """The window in the provider's form."""
    return [{"role": record["role"], "content": record["content"]} for record in window]


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
    **source: Any,
) -> Record:
    """One message of the window; `foreign` is what the turn had read that others wrote, or one before it."""
    told = {key: value for key, value in source.items() if value is not None}
    fields = {"role": role, "content": content, "turn": turn, "seq": seq, "at": at}
    return {**fields, FOREIGN: foreign, **told}


async def recall(store: Store, session: str, keep: int = KEEP) -> tuple[list[Record], int]:
    """The window as the Store has it, and the number of its last message (0 for a new session)."""
    known = await store.select(Session, {"key": session}, limit=1)
    where: dict[str, Any] = {"session_id": session}
    rows = await store.select(ConversationMessage, where, order=[("seq", "desc")], limit=2 * keep)
    if not rows:
        return [], 0
    rows.reverse()
    clear_at = known[0].clear_at if known else None
    foreign = mark(known[0] if known else Session(key=session))
    window = [
        record(
            row.role,
            row.content,
            row.turn_id or str(row.seq),
            row.seq,
            int(row.created_at.timestamp() * 1000),
            foreign,
        )
        for row in rows
        if clear_at is None or row.created_at > clear_at
    ]
    if len(rows) == 2 * keep and window:  # the oldest turn may be cut
        first = window[0]["turn"]
        window = [item for item in window if item["turn"] != first]
    return window[surplus(window, 0, keep) :], rows[-1].seq
