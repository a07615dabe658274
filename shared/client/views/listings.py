"""Long lists by pages: conversations and turns, each page with the cursor of the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared import people
from shared.bus.messages import OWN, RESERVED_SESSIONS
from shared.client.client import Client
from shared.client.types import Card
from shared.client.views.visible import Sight
from shared.errors import Missing, UsageError
from shared.store.records import Project, Session, TurnRow

_LOOKED = 200  # rows that are read at once where not all of them are for this person
_ASIDE = tuple(one for one in RESERVED_SESSIONS if one != OWN)  # sessions in which no words are said


@dataclass(frozen=True)
class ListingPage:
    """Some of a list, and the cursor with which the rest begins; "" at its end."""

    items: list[Card]
    next: str = ""


async def sessions(
    client: Client,
    sight: Sight,
    *,
    query: str = "",
    project: str = "",
    archived: bool = False,
    after: str = "",
    limit: int = 50,
) -> ListingPage:
    """Conversations that they see, the last used first; with a query those whose title or name has it.

    Those that were put away, or the others.
    """
    store = await client.store()
    slugs = {row.id: row.slug for row in await store.select(Project)}
    found: list[Card] = []
    at = moment(after)
    while True:
        where: dict[str, Any] = {"archived": archived} | ({"last_active_at": ("lt", at)} if at else {})
        rows = await store.select(Session, where, order=[("last_active_at", "desc")], limit=_LOOKED)
        for row in rows:
            at = row.last_active_at
            card = _session(row, slugs)
            if _is_seen(row, card, sight, slugs) and _fits(card, query, project):
                found.append(card)
            if len(found) == limit:
                return ListingPage(found, at.isoformat())
        if len(rows) < _LOOKED:
            return ListingPage(found)


def _is_seen(row: Session, card: Card, sight: Sight, slugs: dict[Any, str]) -> bool:
    if row.key.startswith(_ASIDE):
        return False
    if sight.everything or people.sees(sight.user_id, row.user_id):
        return True
    return row.user_id is None and card["project"] in sight.projects and bool(slugs)


def _fits(card: Card, query: str, project: str) -> bool:
    if project and card["project"] != project:
        return False
    return query.casefold() in f"{card['title']} {card['id']}".casefold()


def _session(row: Session, slugs: dict[Any, str]) -> Card:
    project = row.project_id or row.active_project
    return {
        "id": row.key,
        "title": row.title,
        "user_id": row.user_id,
        "project": slugs.get(project, "") if project else "",
        "channel": row.channel,
        "agent": row.agent,
        "archived": row.archived,
        "created_at": row.created_at.isoformat(),
        "last_active_at": row.last_active_at.isoformat(),
    }


async def session(client: Client, key: str) -> Card:
    """One of them; Missing where nothing was said there yet."""
    store = await client.store()
    rows = await store.select(Session, {"key": key}, limit=1)
    if not rows:
        raise Missing(
            f"there is no session {key[:100]!r} yet", "nothing was said there", "GET /api/sessions lists them"
        )
    return _session(rows[0], {row.id: row.slug for row in await store.select(Project)})


async def turns(client: Client, session: str, *, after: str = "", limit: int = 50) -> ListingPage:
    """Chatter's turns in a conversation, the newest first."""
    store = await client.store()
    at = moment(after)
    where: dict[str, Any] = {"session_id": session, "agent": "chatter"}
    where |= {"created_at": ("lt", at)} if at else {}
    rows = await store.select(TurnRow, where, order=[("created_at", "desc")], limit=limit)
    return ListingPage([_turn(row) for row in rows], _next([row.created_at for row in rows], limit))


def _turn(row: TurnRow) -> Card:
    return {
        "id": row.turn_id,
        "state": row.state,
        "model": row.model,
        "error": row.error,
        "user_id": row.user_id,
        "started_at": row.started_at.isoformat(),
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
    }


def _next(times: Sequence[datetime], limit: int) -> str:
    return times[-1].isoformat() if len(times) == limit else ""


def moment(cursor: str) -> datetime | None:
    """A cursor of such a list; UsageError for what is none."""
    if not cursor:
        return None
    try:
        found = datetime.fromisoformat(cursor)
        return found if found.tzinfo and 1970 <= found.year < 2200 else _none(cursor)
    except ValueError:
        return _none(cursor)


def _none(cursor: str) -> datetime:
    raise UsageError(f"{cursor[:40]!r} is no cursor", "a page's `next` is one", "leave it out to begin anew")
