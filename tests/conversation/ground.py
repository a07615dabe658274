"""Conversations as finished turns leave them, in Redis and in the Store."""

from __future__ import annotations

from datetime import timedelta

from shared.conversation.window import record
from shared.store.records import ConversationMessage
from shared.store.row import now
from shared.store.sqlite import SqliteStore
from shared.turns.records import Record


def turn(name: str, size: int, start: int = 1, at: int = 0) -> list[Record]:
    """A turn of a question, rounds of calls and results, and an answer."""
    return [
        record(
            "user" if n % 2 == 0 else "assistant",
            [{"type": "text", "text": f"{name}.{n}"}],
            name,
            start + n,
            at,
        )
        for n in range(size)
    ]


def turns(*sizes: int, at: int = 0) -> list[Record]:
    """One turn after another."""
    window: list[Record] = []
    for number, size in enumerate(sizes):
        window += turn(f"t{number}", size, len(window) + 1, at)
    return window


async def kept(store: SqliteStore, window: list[Record], session: str = "s", ago: float = 60) -> None:
    """Messages as finished turns leave them, `ago` minutes ago."""
    begin = now() - timedelta(minutes=ago)
    for item in window:
        await store.insert(
            ConversationMessage(
                session_id=session,
                seq=item["seq"],
                turn_id=item["turn"],
                role=item["role"],
                content=item["content"],
                created_at=begin + timedelta(milliseconds=item["seq"]),
            )
        )
