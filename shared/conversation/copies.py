"""Conversations made of others: a fork of one, and what was imported. Their rows are new, their times are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from shared.conversation.exchange import SessionDocument
from shared.conversation.sessions import DEFAULT
from shared.errors import Missing
from shared.memory import episodes
from shared.memory.episodes import TurnSide
from shared.store.base import Store
from shared.store.records import ConversationMessage, Memory, Message, Row, Session, SnapshotRow, derived, now

IMPORTED = "imported"  # the source of a message that a file held
_NONE = "promptdock sessions list and promptdock sessions show name what there is"


async def fork(
    store: Store, whole: Session, at: str, key: str, title: str, user: str
) -> tuple[Session, list[Row]]:
    """A fork's session, and the rows of what it holds; `at` names the last message, "" the newest.

    What came before the origin was cleared is no more in view in the fork than there, unless it ends before that.
    """
    order: Any = [("seq", "asc")]
    rows = await store.select(ConversationMessage, {"session_id": whole.key}, order=order)
    if not rows:
        raise Missing(f"nothing was said in {whole.key[:100]!r} yet", "", "")
    kept = rows[: await _end(store, whole.key, rows, at) + 1]
    last, clear = kept[-1].seq, _cleared(whole, rows)
    clear = clear if clear < last else 0
    session = Session(
        id=derived("session", key),
        key=key,
        user_id=user,
        agent=whole.agent,
        project_id=whole.project_id,
        title=title,
        titled="person",
        origin=whole.origin,
        clear_seq=clear,
        talked=True,
    )
    made = now()
    copies = [_copy(row, key, made + timedelta(microseconds=number)) for number, row in enumerate(kept)]
    return session, [*copies, *await _summary(store, whole, key, clear, last)]


async def _end(store: Store, session: str, rows: Sequence[ConversationMessage], at: str) -> int:
    """Where the fork ends: behind the message that is named, and behind the results of what it calls."""
    end = len(rows) - 1
    if at:
        named = (
            number
            for number, row in enumerate(rows)
            if at in (row.source_message_id, str(row.id), f"#{row.seq}")
        )
        end = next(named, -1)
    if end < 0:
        end = await _passed(store, session, rows, at)
    if end < 0:
        raise Missing(f"there is no message {at[:100]!r} in this conversation", "", _NONE)
    if any(block.get("type") == "tool_use" for block in rows[end].content) and end + 1 < len(rows):
        end += 1
    return end


async def _passed(store: Store, session: str, rows: Sequence[ConversationMessage], at: str) -> int:
    """The end of the turn that a message belongs to which people read, and the model otherwise; -1 for none."""
    turn = at.removesuffix(".end")
    if not (ends := [number for number, row in enumerate(rows) if row.turn_id == turn]):
        where = {"session_id": session, "message_id": at}
        passed = await store.select(Message, where, limit=1)
        # What joined a turn came behind its beginning.
        ends = [
            number for number, row in enumerate(rows) if passed and row.created_at <= passed[0].created_at
        ]
    return max(ends, default=-1)


def _cleared(whole: Session, rows: Sequence[ConversationMessage]) -> int:
    """The number behind which the window begins."""
    by_time = (row.seq for row in rows if whole.clear_at and row.created_at <= whole.clear_at)
    return max(whole.clear_seq, *by_time, 0)


def _copy(row: ConversationMessage, key: str, at: datetime) -> ConversationMessage:
    # Made now, so that it is not swept away with what is old; when it was said stands beside.
    return ConversationMessage(
        id=derived("conversation", key, row.seq),
        created_at=at,
        session_id=key,
        seq=row.seq,
        turn_id=f"{key}/{row.turn_id or row.seq}",
        role=row.role,
        content=row.content,
        tool_calls=row.tool_calls,
        tool_call_id=row.tool_call_id,
        user_id=row.user_id,
        user_name=row.user_name,
        source=row.source,
        source_message_id=row.source_message_id or str(row.id),
        said_at=row.said_at or row.created_at,
    )


async def _summary(store: Store, whole: Session, key: str, clear: int, last: int) -> list[Row]:
    """The newest summary of what the fork holds."""
    where: dict[str, Any] = {"session_id": whole.key, "kind": "summary", "last_seq": ("le", last)}
    found = await store.select(SnapshotRow, where, order=[("last_seq", "desc")], limit=1)
    if not found or (found[0].last_seq or 0) <= clear:
        return []
    given = found[0].model_dump(exclude={"id", "created_at", "session_id"})
    return [SnapshotRow(id=derived("summary", key, last), session_id=key, **given)]


def imported(
    document: SessionDocument, key: str, title: str, user: str, origin: dict[str, Any], after: int = 0
) -> tuple[Session, list[Row]]:
    """The session of what a file held, and its messages, numbered behind `after`; written twice they are the same."""
    at = now()
    rows: list[Row] = []
    for seq, line in enumerate(document.said, after + 1):
        rows.append(
            ConversationMessage(
                id=derived("conversation", key, seq),
                created_at=at + timedelta(microseconds=seq),
                session_id=key,
                seq=seq,
                turn_id=f"{key}/{seq}",
                role=line.role,
                content=[{"type": "text", "text": line.content}],
                user_name=line.user_name,
                user_id=user if line.role == "user" else None,
                source=IMPORTED,
                source_message_id=line.id,
                said_at=line.timestamp,
            )
        )
    session = Session(
        id=derived("session", key),
        key=key,
        user_id=user,
        title=title,
        titled="person",
        origin=origin,
        talked=True,
    )
    return session, rows


def remembered(
    document: SessionDocument, session: Session, user: str, agent: str, after: int = 0
) -> list[Memory]:
    """What is remembered of it, as of what was said here."""
    at = now()
    said = [
        TurnSide(
            seq,
            line.user_name or (user if line.role == "user" else agent if line.role == "assistant" else ""),
            line.content,
            (line.timestamp or at) + timedelta(microseconds=seq % 1000),
            line.role,
            line.id,
            session.origin,
        )
        for seq, line in enumerate(document.said, after + 1)
        if line.role in ("user", "assistant")
    ]
    return episodes.rows(
        said, session=session.key, user_id=user, project=DEFAULT, turn_id=session.key, agent=agent
    )
