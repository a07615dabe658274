"""What was said, as it is remembered: a row for each side of a turn, known by its conversation and number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.memory import scope
from shared.store.records import Memory, derived

LONGEST = 8_000  # characters of one message that are remembered


@dataclass(frozen=True)
class TurnSide:
    """Something that was said in a conversation: number `seq` of it."""

    seq: int
    speaker: str
    text: str
    at: datetime
    role: str = "user"
    message_id: str | None = None
    origin: dict[str, Any] = field(default_factory=dict)


def rows(
    said: Iterable[TurnSide], *, session: str, user_id: str, project: str, turn_id: str, agent: str
) -> list[Memory]:
    """The rows of what was said; written again after a crash they are the same ones."""
    return [
        Memory(
            id=key(session, one.seq),
            created_at=one.at,
            kind="turn",
            **scope.kept_in(project, user_id),
            session_id=session,
            user_id=user_id,
            subject=one.speaker,
            body=one.text[:LONGEST],
            confidence=1.0,
            source=turn_id,
            detail={"seq": one.seq, "role": one.role, "message_id": one.message_id, "agent": agent},
            origin=one.origin,
        )
        for one in said
        if one.text.strip()
    ]


def key(session: str, seq: int) -> Any:
    """The id of the row of message `seq` of a conversation."""
    return derived("memory", "turn", session, seq)
