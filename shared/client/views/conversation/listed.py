"""The conversations that there are: a page of them, and those whose words fit a search."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.bus.keys import CHATTER
from shared.bus.messages import OWN, RESERVED_SESSIONS
from shared.client.client import Client
from shared.client.text.safe import line
from shared.store.query import IN_LIMIT
from shared.store.records import ConversationMessage, Session

PAGE = 40
_FOUND = 60  # messages that a search looks at
_LINE = 200  # characters of what was found
_ASIDE = tuple(one for one in RESERVED_SESSIONS if one != OWN)  # sessions in which nobody talks


@dataclass(frozen=True)
class ConversationCard:
    """One conversation. `found` is the line in which a search found its words."""

    key: str
    title: str
    user: str
    at: datetime
    found: str = ""


async def recent(
    client: Client, user: str = "", offset: int = 0, limit: int = PAGE
) -> list[ConversationCard]:
    """The last used first, without those that were put away; of one person, or of all. Reads the Store."""
    store = await client.store()
    where: dict[str, Any] = {"agent": CHATTER, "archived": False} | ({"user_id": user} if user else {})
    order: Any = [("last_active_at", "desc")]
    rows = await store.select(Session, where, order=order, limit=limit, offset=offset)
    return [_card(row) for row in rows if _said_in(row.key)]


async def search(client: Client, words: str, user: str = "", limit: int = PAGE) -> list[ConversationCard]:
    """Conversations in which these words were said, the best first, each once."""
    store = await client.store()
    found = await store.search(ConversationMessage, words, None, _FOUND)
    lines: dict[str, str] = {}
    for row, _score in found.rows:
        lines.setdefault(row.session_id, _said(row, words))
    keys = [key for key in lines if _said_in(key)][: min(limit, IN_LIMIT)]
    rows = {row.key: row for row in await store.select(Session, {"key": ("in", keys)})} if keys else {}
    mine = [rows[key] for key in keys if key in rows and user in ("", rows[key].user_id)]
    return [_card(row, lines[row.key]) for row in mine]


def _card(row: Session, found: str = "") -> ConversationCard:
    return ConversationCard(row.key, row.title or row.key, row.user_id or "", row.last_active_at, found)


def _said_in(key: str) -> bool:
    """Whether people talk there: in those of commands and the like nobody does."""
    return not key.startswith(_ASIDE)


def _said(row: ConversationMessage, words: str) -> str:
    """The line of a message that holds most of the words."""
    wanted = {word.casefold() for word in words.split()}
    texts = [str(block.get("text") or "") for block in row.content if block.get("type") == "text"]
    lines = [one for text in texts for one in text.splitlines() if one.strip()]
    best = max(lines, key=lambda one: sum(word in one.casefold() for word in wanted), default="")
    return line(best, _LINE)
