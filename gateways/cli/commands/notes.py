"""`notes`: what a project keeps in words, for its agents and for people."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call
from gateways.cli.options import Json, Session, User, Yes, group
from gateways.cli.run import run
from shared.client import Client
from shared.client.views import lookup, notes, projects
from shared.errors import UsageError
from shared.settings import Settings

_TITLE = 100  # characters that a title taken from the text may have

app = group()
Of = Annotated[
    str | None, typer.Option(help="Its project; the active one by default.", autocompletion=complete.projects)
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name, or a part of it.", autocompletion=complete.notes)
]


@app.command("list")
def list_(user: User, project: Of = None, session: Session = None, as_json: Json = False) -> NoReturn:
    """The notes of a project."""
    run(lambda settings: _list(settings, project, user, session, as_json))


@app.command("show")
def show(
    name: Name, user: User, project: Of = None, session: Session = None, as_json: Json = False
) -> NoReturn:
    """One note, whole."""
    run(lambda settings: _show(settings, name, project, user, session, as_json))


@app.command("add")
def add(
    text: Annotated[list[str], typer.Argument(metavar="TEXT...", help="In markdown; - reads stdin.")],
    user: User,
    title: Annotated[
        str | None, typer.Option(help="The note to make or add to; the first line by default.")
    ] = None,
    project: Of = None,
    session: Session = None,
    as_json: Json = False,
) -> NoReturn:
    """Make a note, or add to the one of that title."""
    run(lambda settings: _add(settings, " ".join(text), title, project, user, session, as_json))


@app.command("search")
def search(
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY...", help="Words; any of them may stand there.")
    ],
    user: User,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 10,
    project: Of = None,
    session: Session = None,
    as_json: Json = False,
) -> NoReturn:
    """The notes that hold some words, the best first; works with the cluster down."""
    run(lambda settings: _search(settings, " ".join(query), limit, project, user, session, as_json))


@app.command("delete")
def delete(
    name: Name,
    user: User,
    yes: Yes = False,
    project: Of = None,
    session: Session = None,
    as_json: Json = False,
) -> NoReturn:
    """Delete a note for good."""
    run(lambda settings: _delete(settings, name, yes, project, user, session, as_json))


async def _project(client: Client, typed: str | None, user: str, session: str | None) -> str:
    return await (lookup.project(client, typed) if typed else projects.active(client, user, session))


async def _list(settings: Settings, typed: str | None, user: str, session: str | None, as_json: bool) -> None:
    async with Client(settings) as client:
        project = await _project(client, typed, user, session)
    found = (await call(settings, "list_notes", user, {"project_id": project}, exact=True))["notes"]
    for note in found:
        note["name"] = note["name"].removesuffix(".md")
    if as_json:
        screen.document("notes", project=project, notes=found)
        return
    rows = [
        (
            note["name"],
            note["title"],
            f"{note['size_bytes']} B",
            screen.moment(note["modified"]),
            note.get("made_after_reading", ""),
        )
        for note in found
    ]
    empty = f"Project {project} has no notes: promptdock notes add TEXT --project {project}"
    screen.table(rows, ("name", "title", "size", "changed", "made after reading"), empty)


async def _meant(
    settings: Settings, name: str, typed: str | None, user: str, session: str | None
) -> dict[str, Any]:
    """The note that a person named, as the tools take it."""
    async with Client(settings) as client:
        project = await _project(client, typed, user, session)
        return {"project_id": project, "title": await notes.named(client, project, name)}


async def _show(
    settings: Settings, name: str, typed: str | None, user: str, session: str | None, as_json: bool
) -> None:
    meant = await _meant(settings, name, typed, user, session)
    result = await call(settings, "read_note", user, meant, exact=True)
    if as_json:
        screen.document("note", name=meant["title"], project=meant["project_id"], **result)
        return
    with screen.paged():
        screen.out(result["content"])
    if read := result.get("made_after_reading"):
        screen.talk(f"it was written after reading {read}")


async def _add(
    settings: Settings, typed: str, title: str | None, project: str | None, user: str,
    session: str | None, as_json: bool,
) -> None:  # fmt: skip
    text = screen.typed(typed).strip()
    if not text:
        raise UsageError("there is nothing to note", "the text is empty", "write it behind notes add")
    called, content = (title, text) if title else _titled(text)
    async with Client(settings) as client:
        meant = {"project_id": await _project(client, project, user, session), "title": called}
    result = await call(settings, "append_note", user, {**meant, "content": content}, exact=True)
    name = result["path"].removeprefix("notes/").removesuffix(".md")
    if as_json:
        screen.document("note_add", name=name, project=meant["project_id"], **result)
        return
    done = "made" if result["status"] == "created" else "longer now"
    screen.out(f"{name} is {done}, in project {meant['project_id']}")


def _titled(text: str) -> tuple[str, str]:
    """A title for a text, which is its first line, and what stands under it."""
    first, _, rest = text.partition("\n")
    title = first.lstrip("#").strip()
    if len(title) > _TITLE:
        return f"{title[:_TITLE].rpartition(' ')[0] or title[:_TITLE]}…", text
    return title, rest.strip() or title


async def _search(
    settings: Settings, query: str, limit: int, typed: str | None, user: str,
    session: str | None, as_json: bool,
) -> None:  # fmt: skip
    async with Client(settings) as client:
        project = await _project(client, typed, user, session)
        found = await notes.search(client, project, query, limit)
    if as_json:
        screen.document("notes_search", project=project, query=query, notes=found)
        return
    rows = [(note["name"], note["title"], note["line"]) for note in found]
    screen.table(rows, ("name", "title", "line"), f"No note of project {project} holds a word of it.")


async def _delete(
    settings: Settings, name: str, yes: bool, typed: str | None, user: str,
    session: str | None, as_json: bool,
) -> None:  # fmt: skip
    meant = await _meant(settings, name, typed, user, session)
    slug, project = meant["title"], meant["project_id"]
    again = f"promptdock notes delete {shlex.quote(slug)} --project {project}"
    screen.sure(f"this deletes the note {slug} of project {project} for good", yes, again)
    result = await call(settings, "delete_note", user, meant, exact=True)
    if as_json:
        screen.document("note_delete", project=project, **result)
        return
    screen.out(f"{result['deleted']} is deleted")
