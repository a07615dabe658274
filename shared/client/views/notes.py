"""Notes of a project as people name and search them, from the Store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from shared.client.client import Client
from shared.client.text.matching import pick
from shared.client.text.safe import line
from shared.client.types import Card
from shared.errors import UsageError
from shared.store.origin import Origin, marked
from shared.store.records import Note, Project

_SHOWN = 160  # characters of the line that a search found


async def names(client: Client, project: str) -> list[tuple[str, str]]:
    """The names of a project's notes, each with its title."""
    return [(row.slug, row.title) for row in await _notes(client, project)]


async def named(client: Client, project: str, typed: str) -> str:
    """The name of the note that is meant by its name, its title or a part of it; UsageError for none or several."""
    from shared.tools.lookup import kebab

    found = await _notes(client, project)
    titled = [row.slug for row in found if row.title.casefold() == typed.strip().casefold()]
    if len(titled) == 1:
        return titled[0]
    wanted = kebab(typed.removesuffix(".md"), 100) or typed
    return pick(
        wanted, (row.slug for row in found), "note", f"promptdock notes list --project {project} shows them"
    )


async def search(client: Client, project: str, query: str, limit: int) -> list[Card]:
    """The notes that hold words of the query, the best first, each with the line that holds most of them."""
    owner = await _owner(client, project)
    if owner is None:
        return []
    found = await (await client.store()).search(Note, query, {"project_id": owner}, limit)
    return [_hit(row, score, query) for row, score in found.rows]


async def _notes(client: Client, project: str) -> list[Note]:
    owner = await _owner(client, project)
    if owner is None:
        return []
    return await (await client.store()).select(Note, {"project_id": owner}, order=[("slug", "asc")])


async def _owner(client: Client, project: str) -> UUID | None:
    """The id of a project; None for one that was never used, as `default` before its first use."""
    owners = await (await client.store()).select(Project, {"slug": project}, limit=1)
    return owners[0].id if owners else None


def _hit(note: Note, score: float, query: str) -> Card:
    from shared.tools.knowledge import ranking

    lines = [text for text in note.body.splitlines() if not text.startswith("#")]  # a heading says little
    best = ranking.rank(query, lines)
    shown = lines[best[0][0]] if best else note.title
    at = note.updated_at.isoformat()
    found = {
        "name": note.slug,
        "title": note.title,
        "line": line(shown, _SHOWN),
        "score": float(f"{score:.4g}"),
    }
    return found | {"modified": at} | marked([note])


@dataclass(frozen=True)
class NoteView:
    """One note; `body` is Markdown, and empty in a list. `foreign` says after reading what it was written."""

    name: str
    title: str
    body: str
    size: int = 0
    at: datetime | None = None
    by: str = ""
    foreign: str = ""


async def shelf(client: Client, project: str) -> list[NoteView]:
    """The notes of a project without their text, by name. Reads the Store."""
    return [_view(row, whole=False) for row in await _notes(client, project)]


async def read(client: Client, project: str, name: str) -> NoteView:
    """One note by its name; UsageError where there is none."""
    for row in await _notes(client, project):
        if row.slug == name:
            return _view(row, whole=True)
    raise UsageError(
        f"there is no note {name!r}", "", f"promptdock notes list --project {project} shows them"
    )


def _view(row: Note, whole: bool) -> NoteView:
    made = Origin.of(row.origin)
    body = row.body if whole else ""
    return NoteView(row.slug, row.title, body, len(row.body.encode()), row.updated_at, made.by, made.foreign)
