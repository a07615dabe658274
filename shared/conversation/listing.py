"""Which conversations a person has, and which of them hold some words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared import people
from shared.bus.messages import OWN, RESERVED_SESSIONS
from shared.memory.recall import said
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import ConversationMessage, Session

_ASIDE = tuple(one for one in RESERVED_SESSIONS if one != OWN)  # sessions in which nobody talks
_HITS = 60  # messages that a search looks at, of so many conversations as are asked for at once
_LINE = 200  # characters of what was found


@dataclass(frozen=True)
class FoundSession:
    """A conversation, and the line of it that holds most of the words."""

    row: Session
    line: str
    message_id: str


async def of_person(
    store: Store, user: str, archived: bool = False, limit: int = 20, offset: int = 0
) -> list[Session]:
    """The conversations that a person sees, the last used first: those that are archived, or the others."""
    found: list[Session] = []
    where: dict[str, Any] = {"user_id": ("in", people.seen_by(user)), "archived": archived}
    order: Any = [("last_active_at", "desc")]
    read, want = 0, offset + limit
    while len(found) < want:  # those in which nobody talks are left out, so that a page may need another read
        rows = await store.select(Session, where, order=order, limit=want, offset=read)
        found += [row for row in rows if not row.key.startswith(_ASIDE)]
        read += len(rows)
        if len(rows) < want:
            break
    return found[offset:want]


async def search(store: Store, user: str, words: str, limit: int = 20) -> list[FoundSession]:
    """Those that a person sees in which any of these words was said, archived ones too; the best first, each once."""
    known = await store.select(Session, {"user_id": ("in", people.seen_by(user))})
    rows = {row.key: row for row in known if not row.key.startswith(_ASIDE)}
    scored: list[tuple[ConversationMessage, float]] = []
    keys = sorted(rows)
    for start in range(0, len(keys), IN_LIMIT):
        where = {"session_id": ("in", keys[start : start + IN_LIMIT])}
        scored += (await store.search(ConversationMessage, words, where, _HITS)).rows
    best: dict[str, FoundSession] = {}
    for hit, _score in sorted(scored, key=lambda found: -found[1]):
        if hit.session_id not in best and (found := line(said(hit), words)):
            id = hit.source_message_id or str(hit.id)
            best[hit.session_id] = FoundSession(rows[hit.session_id], found, id)
    return list(best.values())[:limit]


def line(text: str, words: str) -> str:
    """The line that holds most of the words; "" where only a tool's call or result holds them."""
    wanted = {word.casefold() for word in words.split()}
    there = [one.strip() for one in text.splitlines() if one.strip()]
    best = max(there, key=lambda one: sum(word in one.casefold() for word in wanted), default="")
    return best[:_LINE]
