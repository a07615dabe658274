"""The conversations that there are: a page of them, and those whose words fit a search."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared import people
from shared.bus.messages import OWN, RESERVED_SESSIONS
from shared.client.client import Client
from shared.conversation import listing
from shared.memory.recall import said
from shared.store.query import IN_LIMIT
from shared.store.records import ConversationMessage, Session

PAGE = 40
_FOUND = 60  # messages that a search looks at
_ASIDE = tuple(one for one in RESERVED_SESSIONS if one != OWN)  # sessions in which nobody talks


@dataclass(frozen=True)
class ConversationCard:
    """One conversation. `found` is the line in which a search found its words."""

    key: str
    title: str
    user: str
    at: datetime
    found: str = ""
    archived: bool = False


async def recent(
    client: Client, user: str = "", offset: int = 0, limit: int = PAGE, archived: bool = False
) -> list[ConversationCard]:
    """The last used first: those that were put away, or the others; of one person, or of all. Reads the Store."""
    store = await client.store()
    where: dict[str, Any] = {"archived": archived} | (
        {"user_id": ("in", people.seen_by(user))} if user else {}
    )
    order: Any = [("last_active_at", "desc")]
    rows = await store.select(Session, where, order=order, limit=limit, offset=offset)
    return [_card(row) for row in rows if _said_in(row.key)]


async def title(client: Client, session: str) -> str:
    """What a conversation is called; "" where it has no title yet. Reads the Store."""
    rows = await (await client.store()).select(Session, {"key": session}, limit=1)
    return (rows[0].title or "") if rows else ""


async def search(client: Client, words: str, user: str = "", limit: int = PAGE) -> list[ConversationCard]:
    """Conversations in which any of these words was said, the best first, each once; archived ones too."""
    store = await client.store()
    if user:
        return [_card(one.row, one.line) for one in await listing.search(store, user, words, limit)]
    found = await store.search(ConversationMessage, words, None, _FOUND)
    lines: dict[str, str] = {}
    for row, _score in found.rows:
        if _said_in(row.session_id) and (line := listing.line(said(row), words)):
            lines.setdefault(row.session_id, line)
    keys = list(lines)[: min(limit, IN_LIMIT)]
    rows = {row.key: row for row in await store.select(Session, {"key": ("in", keys)})} if keys else {}
    return [_card(rows[key], lines[key]) for key in keys if key in rows]


def _card(row: Session, found: str = "") -> ConversationCard:
    called = row.title or row.key
    return ConversationCard(row.key, called, row.user_id or "", row.last_active_at, found, row.archived)


def _said_in(key: str) -> bool:
    """Whether people talk there: in those of commands and the like nobody does."""
    return not key.startswith(_ASIDE)
