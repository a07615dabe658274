"""The category of these tools, and whose conversations they may touch."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from uuid import UUID

from shared import people
from shared.bus.messages import default_session
from shared.conversation.context import SHORT
from shared.errors import Missing, ToolError
from shared.store.origin import MADE, marked
from shared.store.records import Session, SnapshotRow
from shared.tools.context import Context
from shared.tools.registry import Category, Result

SESSIONS = "sessions"
UNSIGNED = (
    "nobody signed for this person, who sees only what was said unsigned; what was said signed is shown to who signs: "
    "promptdock chat, the page"
)
_LETTERS = 4  # of an id at least, where it is not whole
_MEANT = 20  # of one beginning that are looked at
_HEX = re.compile(r"[0-9a-f]{1,32}")
_TRIES, _PAUSE = 6, 0.4  # looks at the Store, seconds between them: rows of a turn come there behind its end


def sessions() -> Category:
    """A module's part of the category."""
    return Category(
        SESSIONS, "Conversations: clear, save, restore, list, search, name, fork, export, import, threads"
    )


def person(here: Context) -> str:
    """Whose conversations these are; ToolError where nobody's request led to this call."""
    user, _ = here.owner
    if not user:
        raise ToolError("nobody's conversations can be meant", "no person's request led to this call", "")
    return user


async def own(here: Context, key: str) -> Session:
    """A conversation that this person sees. Of one that is another's nothing is told but that."""
    user = person(here)
    rows = await here.store.select(Session, {"key": key}, limit=1)
    if not rows:
        raise Missing(
            f"there is no conversation {key[:100]!r}", "", "list_sessions names those that there are"
        )
    # One that names nobody may be an agent's, with what anybody asked it.
    if not people.sees(user, rows[0].user_id) and not (
        rows[0].user_id is None and key == default_session(user)
    ):
        why, fix = "it belongs to somebody else", ""
        if people.sees(people.called(user), rows[0].user_id):
            why, fix = "it is theirs who sign by this name", UNSIGNED
        raise ToolError(f"the conversation {key[:100]!r} is not {people.called(user)}'s", why, fix)
    return rows[0]


def marks(here: Context, rows: Sequence[Session]) -> Result:
    """What a result that shows these conversations says beside them: what was read for them, and whose it is not."""
    user = person(here)
    others = any(row.user_id != user and not people.signs(row.user_id or "") for row in rows)
    told = {MADE: "what was said unsigned in this name"} if others else marked(rows)
    return told | ({} if people.signs(user) else {"more": UNSIGNED})


async def saved(here: Context, id: str) -> SnapshotRow:
    """What this person saved: by its id, or by the first letters of that or of its description.

    What was saved just now may be on its way.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(Missing):
            return await _saved(here, id)
        await asyncio.sleep(_PAUSE)
    return await _saved(here, id)


async def _saved(here: Context, typed: str) -> SnapshotRow:
    user = person(here)
    wanted = " ".join(typed.split()).casefold()
    found = await _begins(here, wanted)
    mine = [row for row in found if await _theirs(here, row, user)]
    if found and not mine:
        raise ToolError(
            f"what is saved as {typed[:40]!r} is not {people.called(user)}'s",
            "it is of somebody else's conversation",
            "",
        )
    if not found and wanted:
        rows = await _reachable(here, user)
        called = [row for row in rows if row.description.casefold().startswith(wanted)]
        mine = [row for row in called if await _theirs(here, row, user)]
        mine = [row for row in mine if row.description.casefold() == wanted] or mine
    if len(mine) == 1:
        return mine[0]
    if mine:
        several = ", ".join(f"{str(row.id)[:SHORT]} {row.description[:40]!r}" for row in mine[:5])
        raise ToolError(f"{typed[:40]!r} may mean several", several, "write the id of one")
    raise Missing(
        f"there is nothing saved as {typed[:40]!r}",
        "it may have been deleted",
        "promptdock sessions saved shows what there is",
    )


async def _begins(here: Context, wanted: str) -> list[SnapshotRow]:
    """Whatever is saved under an id that begins so: the first ones from the lowest such id on."""
    letters = wanted.replace("-", "")
    if len(wanted) < _LETTERS or not _HEX.fullmatch(letters):
        return []
    where = {"kind": "saved", "id": ("ge", UUID(letters.ljust(32, "0")))}
    rows = await here.store.select(SnapshotRow, where, order=[("id", "asc")], limit=_MEANT)
    return [row for row in rows if str(row.id).startswith(wanted)]


async def _reachable(here: Context, user: str) -> list[SnapshotRow]:
    """What may be this person's, the newest first: their own, this conversation's, and what no person saved."""
    found: dict[UUID, SnapshotRow] = {}
    for more in ({"user_id": user}, {"session_id": here.session_id}, {"user_id": None}):
        rows = await here.store.select(SnapshotRow, {"kind": "saved", **more})
        found |= {row.id: row for row in rows}
    return sorted(found.values(), key=lambda row: row.created_at, reverse=True)


async def _theirs(here: Context, row: SnapshotRow, user: str) -> bool:
    """Whether it is of their conversation: that rests by itself, too."""
    if row.user_id is not None or row.session_id == here.session_id:
        return row.user_id == user or row.session_id == here.session_id
    rows = await here.store.select(Session, {"key": row.session_id}, limit=1)
    return bool(rows) and rows[0].user_id == user
