"""The notes of a project: reading, searching, writing."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, Seat, back, called, given, view
from gateways.web.render.words import part as quoted
from shared.client.views import notes, projects
from shared.errors import PromptDockError

router = APIRouter()
_LONGEST = 1_000_000  # characters of a note
_HITS = 30


async def _project(here: Seat, project: str) -> str:
    """The one that is named, else that of the conversation; HttpError 404 for one that is not the person's."""
    found = project or await projects.active(here.client, here.person.user_id, here.session)
    if not here.person.owner and found not in here.person.projects:
        raise HttpError(404, f"there is no project {found[:100]!r}")
    return found


@router.get("/notes")
async def listed(here: Here, project: str = "", q: str = "") -> Response:
    """The notes of a project, or those that hold the words."""
    chosen = await _project(here, project)
    shelf = await notes.shelf(here.client, chosen)
    hits = await notes.search(here.client, chosen, q[:500], _HITS) if q.strip() else []
    names = [str(one["id"]) for one in await projects.listing(here.client)]
    mine = [one for one in names if here.person.owner or one in here.person.projects]
    return await view(
        here,
        "notes",
        "notes.html",
        project=chosen,
        projects=mine,
        shelf=shelf,
        hits=hits,
        q=q,
        note=None,
        edits=False,
    )


@router.get("/notes/{project}/{name}")
async def one(here: Here, project: str, name: str, edit: str = "") -> Response:
    """One note."""
    chosen = await _project(here, project)
    found = await notes.read(here.client, chosen, name) if name != "new" else notes.NoteView("", "", "")
    values = {"project": chosen, "projects": [chosen], "shelf": [], "hits": [], "q": ""}
    return await view(here, "notes", "notes.html", note=found, edits=bool(edit) or name == "new", **values)


@router.post("/notes/{project}")
async def write(here: Here, project: str) -> Response:
    """Keep a note."""
    chosen, form = await _project(here, project), await here.request.form(max_part_size=4 * _LONGEST)
    title, body = given(form, "title", 200), given(form, "body", _LONGEST)
    try:
        if not title:
            raise HttpError(422, "a note needs a title")
        made = await called(here, "write_note", {"project_id": chosen, "title": title, "content": body})
    except PromptDockError as error:
        return back(here, f"/notes?project={quoted(chosen)}", "bad", error.told())
    name = str(made.get("name") or made.get("title") or title).removesuffix(".md")
    return back(here, f"/notes/{quoted(chosen)}/{quoted(name)}", "", "Kept.")


@router.post("/notes/{project}/{name}/delete")
async def delete(here: Here, project: str, name: str) -> Response:
    """Delete a note."""
    chosen = await _project(here, project)
    there = f"/notes?project={quoted(chosen)}"
    try:
        await called(here, "delete_note", {"project_id": chosen, "title": name})
    except PromptDockError as error:
        return back(here, there, "bad", error.told())
    return back(here, there, "", "Deleted.")
