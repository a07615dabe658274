"""Memory as people look through it, from the Store; it needs no cluster."""

from __future__ import annotations

from typing import Any

from shared import people
from shared.bus.keys import CHATTER
from shared.bus.messages import COMMANDS
from shared.client.client import Client
from shared.client.types import Card
from shared.client.views import lookup
from shared.errors import Denied, UsageError
from shared.memory import bundle, editing, recall, scope
from shared.memory.scope import MemoryScope
from shared.store.records import MemoryKind, Session, TurnRow, TurnStep, project_key

_RECENT = 50  # turns among which the last one is looked for
_ASIDE = (COMMANDS, "approval:", "asks:")  # sessions in which no words are said


async def listed(
    client: Client, user: str, kind: MemoryKind | None, project: str | None, everything: bool, limit: int
) -> list[Card]:
    """What is remembered of a person, the newest first."""
    store = await client.store()
    place = project_key(await lookup.project(client, project)) if project else None
    rows = await editing.listed(store, user, kind=kind, project=place, everything=everything, limit=limit)
    return [await editing.card(store, row) for row in rows]


async def one(client: Client, user: str, typed: str) -> Card:
    """One memory of theirs by its id, or the beginning of it."""
    store = await client.store()
    return await editing.card(store, await editing.named(store, user, typed))


async def search(
    client: Client, query: str, user: str, session: str | None, project: str | None, limit: int
) -> list[Card]:
    """What fits, the best first: in one conversation, in a project, or in all that is theirs."""
    store = await client.store()
    if session:
        await _theirs(client, session, user)
        found = await recall.search_session(store, query, session, limit)
    else:
        named = await lookup.project(client, project) if project else ""
        within = await scope.of(store, user, named) if named else MemoryScope(user, anywhere=True)
        found = await recall.search(store, query, within, limit)
    return [{**item.record(), "text": item.text} for item in found]


async def _theirs(client: Client, session: str, user: str) -> None:
    rows = await (await client.store()).select(Session, {"key": session}, limit=1)
    if not rows:
        raise UsageError(f"there is no conversation {session!r}", "", "name one that there is")
    if rows[0].user_id is not None and not people.sees(user, rows[0].user_id):
        raise Denied(f"the conversation {session} is somebody else's", f"{user} did not begin it", "ask them")


async def why(client: Client, user: str, turn: str, session: str = "") -> Card:
    """What was remembered for the answer of a turn of theirs, or for their last one; in one conversation, or in any."""
    store = await client.store()
    where: dict[str, Any] = {"user_id": user, "agent": CHATTER}
    if turn:
        where |= {"user_id": ("in", people.seen_by(user)), "turn_id": turn}
    where |= {"session_id": session} if session else {}
    rows = await store.select(TurnRow, where, order=[("created_at", "desc")], limit=_RECENT)
    turns = [row for row in rows if not (row.session_id or "").startswith(_ASIDE)]
    if not turns:
        what = f"there is no turn {turn!r} of {user}" if turn else f"there is no turn of {user} yet"
        raise UsageError(what, "", "the id of a message, as ask --json prints it; or none, for the last one")
    steps = await store.select(TurnStep, {"turn_id": turns[0].turn_id, "kind": bundle.KIND}, limit=1)
    told = steps[0].detail if steps else {}
    return {
        "turn": turns[0].turn_id,
        "session": turns[0].session_id,
        "query": told.get("query", ""),
        "remembered": told.get("items", []),
    }
