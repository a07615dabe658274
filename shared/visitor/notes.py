"""Notes of a project as people name and search them, from the Store."""

from __future__ import annotations

from typing import Any

from shared.store.origin import marked
from shared.store.records import Note, Project
from shared.visitor.matching import pick
from shared.visitor.plain import line
from shared.visitor.visitor import Visitor

_SHOWN = 160  # characters of the line that a search found
Card = dict[str, Any]


async def names(visitor: Visitor, project: str) -> list[tuple[str, str]]:
    """The names of a project's notes, each with its title."""
    return [(row.slug, row.title) for row in await _notes(visitor, project)]


async def named(visitor: Visitor, project: str, typed: str) -> str:
    """The name of the note that is meant by its name, its title or a part of it; UsageError for none or several."""
    from shared.tools.rows import kebab

    found = await _notes(visitor, project)
    titled = [row.slug for row in found if row.title.casefold() == typed.strip().casefold()]
    if len(titled) == 1:
        return titled[0]
    wanted = kebab(typed.removesuffix(".md"), 100) or typed
    return pick(
        wanted, (row.slug for row in found), "note", f"promptdock notes list --project {project} shows them"
    )


async def search(visitor: Visitor, project: str, query: str, limit: int) -> list[Card]:
    """The notes that hold words of the query, the best first, each with the line that holds most of them."""
    from shared.tools import ranking

    found = await _notes(visitor, project)
    ranked = ranking.rank(query, [f"{row.title}\n{row.title}\n{row.body}" for row in found])
    return [_hit(found[at], score, query) for at, score in ranked[:limit]]


async def _notes(visitor: Visitor, project: str) -> list[Note]:
    store = await visitor.store()
    owners = await store.select(Project, {"slug": project}, limit=1)
    if not owners:  # `default` before its first use
        return []
    return await store.select(Note, {"project_id": owners[0].id}, order=[("slug", "asc")])


def _hit(note: Note, score: float, query: str) -> Card:
    from shared.tools import ranking

    lines = [text for text in note.body.splitlines() if not text.startswith("#")]  # a heading says little
    best = ranking.rank(query, lines)
    shown = lines[best[0][0]] if best else note.title
    at = note.updated_at.isoformat()
    found = {"name": note.slug, "title": note.title, "line": line(shown, _SHOWN), "score": score}
    return found | {"modified": at} | marked([note])
