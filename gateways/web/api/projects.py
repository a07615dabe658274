"""Projects, their repositories, and their notes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from gateways.web.access import Line, Person, Visitor
from gateways.web.api.fields import Body, Limit, Long, Name, NamePart
from gateways.web.calls import call, given
from shared.client.client import Client
from shared.client.types import Card
from shared.client.views import notes as note_views
from shared.client.views import projects as views
from shared.client.views import visible
from shared.client.views.tasks import tasks

router = APIRouter(prefix="/api", tags=["projects"])


class NewProject(Body):
    """A project."""

    name: NamePart


class NewRepository(Body):
    """A repository: a url, or a folder of the machine on which the workers run."""

    url: NamePart | None = None
    path: NamePart | None = None
    name: NamePart | None = None
    project: NamePart | None = None


class NoteText(Body):
    """What a note says."""

    content: Long


def _seen(person: Person, slug: str) -> bool:
    return person.owner or slug in person.projects


async def _check(client: Client, person: Person, slug: str) -> None:
    if not person.owner:
        await visible.project(client, person.sight, slug)


@router.get("/projects")
async def listing(client: Line, visitor: Visitor) -> dict[str, list[Card]]:
    """Those that this person sees, by name."""
    return {"projects": [card for card in await views.listing(client) if _seen(visitor, card["id"])]}


@router.post("/projects", status_code=201)
async def create(asked: NewProject, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Make one."""
    visible.owner(visitor.sight, "a new project")
    return await call(client, visitor, "create_project", {"name": asked.name})


@router.get("/projects/{project}")
async def one(project: Name, client: Line, visitor: Visitor) -> Card:
    """One of them, with what is in it."""
    await _check(client, visitor, project)
    return await views.card(client, project)


@router.get("/repositories")
async def repositories(client: Line, visitor: Visitor) -> dict[str, list[Card]]:
    """Those that agents may read and work on."""
    return {"repositories": [card for card in await tasks.repos(client) if _seen(visitor, card["project"])]}


@router.post("/repositories", status_code=201)
async def add(asked: NewRepository, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Let agents work on one."""
    visible.owner(visitor.sight, "a new repository")
    source = "clone" if asked.url else "link"
    words = given(source=source, url=asked.url, path=asked.path, name=asked.name, project_id=asked.project)
    return await call(client, visitor, "add_repo", words)


@router.delete("/repositories/{repository}")
async def remove(repository: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Agents work on it no more; its files stay."""
    visible.owner(visitor.sight, "the list of repositories")
    return await call(client, visitor, "remove_repo", {"repo_id": repository})


@router.get("/projects/{project}/notes")
async def notes(
    project: Name,
    client: Line,
    visitor: Visitor,
    query: Annotated[str, Query(max_length=500)] = "",
    limit: Limit = 50,
) -> dict[str, Any]:
    """The names of its notes; with a query those that hold its words, the best first."""
    await _check(client, visitor, project)
    if query.strip():
        return {"notes": await note_views.search(client, project, query, limit)}
    return {
        "notes": [{"name": name, "title": title} for name, title in await note_views.names(client, project)]
    }


@router.get("/projects/{project}/notes/{note}")
async def read(project: Name, note: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """What one says."""
    await _check(client, visitor, project)
    return await call(client, visitor, "read_note", {"project_id": project, "title": note})


@router.put("/projects/{project}/notes/{note}")
async def write(project: Name, note: Name, asked: NoteText, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Write or replace one, which the project's agents read as well."""
    await _check(client, visitor, project)
    words = {"project_id": project, "title": note, "content": asked.content}
    return await call(client, visitor, "write_note", words)


@router.delete("/projects/{project}/notes/{note}")
async def delete(project: Name, note: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Away with it."""
    await _check(client, visitor, project)
    return await call(client, visitor, "delete_note", {"project_id": project, "title": note})
