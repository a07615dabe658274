"""Tools of category memory: the notes of a project, in markdown."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from shared.errors import Conflict, Missing, PromptDockError, ToolError
from shared.guard.files.jail import Jail
from shared.guard.permissions.touching import touching
from shared.store.origin import MADE, mark, marked
from shared.store.records import Note, Project, ProjectProfile, derived
from shared.tools import checkouts, lookup
from shared.tools.categories import tier
from shared.tools.context import Context, Root
from shared.tools.registry import Category, Result

category = tier("memory")

# For what files thoughts into notes: it chooses, and writes nothing.
filing = Category("filing", "Choose the note that a person's words fit")
CHOOSE = "choose_note"
LARGEST = 1_000_000  # characters of a note
SPECS = ("specs", "docs/specs", "docs")
ENTRIES = 500
_TRIES = 5
_HEADING = re.compile(r"^# +(.+?) *#*$", re.MULTILINE)
Content = Annotated[str, Field(max_length=LARGEST)]


def _title(arguments: dict[str, Any]) -> str:
    return f"{arguments.get('project_id', '')}/{arguments.get('title', '')}".replace("\n", " ")


@filing.tool(effect="pure", touches=touching("records"))
async def choose_note(here: Context, title: Annotated[str, Field(min_length=1, max_length=200)]) -> Result:
    """Choose the note that the person's words fit, by its title; a new title makes a new note."""
    lookup.note_slug(title)
    return {"title": " ".join(title.split())}


def _path(note: Note) -> str:
    return f"notes/{note.slug}.md"


def _size(note: Note) -> int:
    return len(note.body.encode())


def title_of(body: str, given: str) -> str:
    """A note's title: its first heading, else what it was called."""
    found = _HEADING.search(body)
    return found[1][:300] if found else given.strip()[:300]


@category.tool(
    effect="pure", detail=lambda arguments: str(arguments.get("project_id", "")), touches=touching("records")
)
async def list_notes(here: Context, project_id: str) -> Result:
    """List all notes for a project."""
    project = await lookup.project(here.store, project_id)
    told = await _list(here, project)
    return {"notes": told, **_first(told)}


def _first(notes: list[dict[str, Any]]) -> dict[str, Any]:
    """The mark of a list: of the first of its notes that has one."""
    return next(({MADE: note[MADE]} for note in notes if MADE in note), {})


async def _list(here: Context, project: Project) -> list[dict[str, Any]]:
    rows = await here.store.select(Note, {"project_id": project.id}, order=[("slug", "asc")])
    return [
        {
            "name": f"{note.slug}.md",
            "title": note.title,
            "size_bytes": _size(note),
            "modified": note.updated_at.isoformat(),
            "path": _path(note),
            **marked([note]),
        }
        for note in rows
    ]


@category.tool(effect="idempotent", detail=_title, touches=touching("records"))
async def write_note(here: Context, project_id: str, title: str, content: Content) -> Result:
    """Create or overwrite a project note."""
    project = await lookup.project(here.store, project_id)
    note, made = await _put(here, project, title, lambda _old: content)
    return {"path": _path(note), "title": note.title, "status": "created" if made else "updated"}


@category.tool(effect="idempotent", detail=_title, touches=touching("records"))
async def append_note(here: Context, project_id: str, title: str, content: Content) -> Result:
    """Append content to an existing note, or create a new note if it doesn't exist."""
    project = await lookup.project(here.store, project_id)

    def longer(old: Note | None) -> str:
        if old is None:
            return f"# {title.strip()}\n\n{content}"
        # A call that is replayed finds what it wrote; the same words twice in a row say nothing more.
        return old.body if old.body.endswith(f"\n\n{content}") else f"{old.body}\n\n{content}"

    note, made = await _put(here, project, title, longer)
    status = "created" if made else "appended"
    return {"path": _path(note), "title": note.title, "status": status, "size_bytes": _size(note)}


async def _put(here: Context, project: Project, title: str, body: Any) -> tuple[Note, bool]:
    """Write a note whose text follows from the one there is; the note, and whether it is new."""
    slug = lookup.note_slug(title)
    id = derived("note", project.slug, slug)
    for _ in range(_TRIES):
        old = await lookup.note(here.store, project, title)
        text = body(old)
        if len(text) > LARGEST:
            raise ToolError(
                "the note would be too large", f"at most {LARGEST} characters", "make a second one"
            )
        called = title_of(text, title)
        try:
            if old is None:
                origin = here.origin.kept()
                fresh = Note(id=id, project_id=project.id, slug=slug, title=called, body=text, origin=origin)
                await here.store.insert(fresh)
                return fresh, True
            if (old.body, old.title) == (text, called):
                return old, False
            # All of it a person's own words: nothing of what stood there is left.
            whole = here.by_person and body(None) == text
            origin = (here.origin if whole else here.origin.over(old.origin)).kept()
            return await lookup.change(here.store, old, body=text, title=called, origin=origin), False
        except Conflict:  # somebody wrote it at the same moment
            continue
    raise ToolError(f"the note {title[:100]!r} changes too often", "others write it too", "try again")


async def _note(here: Context, project: Project, title: str) -> Note:
    if found := await lookup.note(here.store, project, title):
        return found
    raise Missing(f"there is no note {title[:100]!r}", f"in project {project.slug}", "see list_notes")


@category.tool(effect="pure", detail=_title, touches=touching("records"))
async def read_note(here: Context, project_id: str, title: str) -> Result:
    """Read a note's full contents."""
    project = await lookup.project(here.store, project_id)
    note = await _note(here, project, title)
    result = {"content": note.body, "title": note.title, "path": _path(note), "size_bytes": _size(note)}
    return result | marked([note])


@category.tool(effect="idempotent", detail=_title, touches=touching("loss"))
async def delete_note(here: Context, project_id: str, title: str) -> Result:
    """Delete a project note by title."""
    project = await lookup.project(here.store, project_id)
    note = await _note(here, project, title)
    told = await lookup.removing(here, {"deleted": note.slug, "title": note.title})
    await here.store.delete(Note, {"id": note.id})
    return told


@category.tool(effect="idempotent", detail=_title, touches=touching("records"))
async def promote_note(here: Context, project_id: str, title: str) -> Result:
    """Explicitly incorporate a note's content into the project profile, as a section of its own."""
    project = await lookup.project(here.store, project_id)
    note = await _note(here, project, title)
    profile = await lookup.first(here.store, ProjectProfile, project_id=project.id)
    before = profile.body if profile else ""
    after = _with_section(before, note)
    if after != before:
        foreign = mark(note)  # what is taken over bears its mark
        origin = here.origin if here.origin.foreign else replace(here.origin, foreign=foreign)
        await lookup.keep_profile(here.store, project, profile, after, origin)
    return {
        "promoted": note.slug,
        "title": note.title,
        "changed": after != before,
        "size_bytes": len(after.encode()),
    }


def _with_section(profile: str, note: Note) -> str:
    """The profile with the note between two marks, in place of what stood there."""
    begin, end = f"<!-- note {note.slug} -->", f"<!-- end of note {note.slug} -->"
    body = _HEADING.sub("", note.body, count=1).strip()
    section = f"{begin}\n## {note.title}\n\n{body}\n{end}"
    head, found, rest = profile.partition(begin)
    if found and end in rest:
        return f"{head}{section}{rest.partition(end)[2]}"
    return f"{profile.rstrip()}\n\n{section}\n".lstrip()


@category.tool(
    effect="pure",
    detail=lambda arguments: str(arguments.get("project_id", "")),
    touches=touching("records"),
    foreign=True,
)
async def compare_specs_notes(here: Context, project_id: str, specs_path: str | None = None) -> Result:
    """List all spec files and note files for a project side by side."""
    project = await lookup.project(here.store, project_id)
    specs: list[dict[str, Any]] = []
    place = specs_path or ""
    try:
        there, _ = await checkouts.opened(here, project_id=project.slug)
        for root in there.roots.values():
            found, under = await asyncio.to_thread(_specs, root, specs_path)
            specs += found
            place = place or under
    except PromptDockError:
        if specs_path:
            raise
    told = await _list(here, project)
    return {
        "specs": specs[:ENTRIES],
        "notes": told,
        "specs_path": place or SPECS[0],
        "notes_path": "notes",
        **_first(told),
    }


def _specs(root: Root, given: str | None) -> tuple[list[dict[str, Any]], str]:
    jail = Jail(root.path)
    for folder in [given] if given else SPECS:
        inner = folder.removeprefix(f"{root.name}/").strip("/") or "."
        if not jail.exists(inner):
            continue
        entries = [entry for entry in jail.list(inner) if entry.kind == "file" and entry.name.endswith(".md")]
        if entries or given:
            found = [
                {"name": entry.name, "path": f"{root.name}/{inner}/{entry.name}", "size_bytes": entry.size}
                for entry in entries
            ]
            return found, inner
    return [], ""
