"""Conversations as they are remembered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.memory import episodes
from shared.memory.episodes import TurnSide
from shared.memory.scope import kept_in
from shared.store.origin import Origin
from shared.store.records import Memory
from shared.store.sqlite import SqliteStore

BEGUN = datetime(2026, 11, 1, tzinfo=UTC)
OURS = Origin(by="chatter", user="ann").kept()


async def told(
    store: SqliteStore,
    *texts: str,
    user: str = "ann",
    session: str = "s",
    project: str = "default",
    start: int = 1,
) -> None:
    """What a person and Chatter said in turn."""
    said = [
        TurnSide(
            seq,
            user if seq % 2 else "chatter",
            text,
            BEGUN + timedelta(minutes=seq),
            "user" if seq % 2 else "assistant",
            f"m{seq}",
            OURS,
        )
        for seq, text in enumerate(texts, start)
    ]
    await store.upsert(
        episodes.rows(said, session=session, user_id=user, project=project, turn_id="t", agent="chatter")
    )


def fact(body: str, user: str = "ann", project: str = "default", **more: Any) -> Memory:
    values: dict[str, Any] = {"kind": "fact", "created_at": BEGUN, "confidence": 0.95, "origin": OURS} | more
    return Memory(body=body, user_id=user, **kept_in(project), **values)
