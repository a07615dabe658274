"""Conversations: all of them, a search in what was said, files in and out, and what is done with one."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from gateways.web import calls
from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, Seat, back, given, view
from gateways.web.render.words import part as quoted
from shared.client.views import listings, visible
from shared.client.views.conversation import listed as conversations
from shared.client.views.conversation import own
from shared.errors import Missing, PromptDockError

router = APIRouter()
_SAVED = 50
_KINDS = {"json": "application/json", "markdown": "text/markdown; charset=utf-8"}


@router.get("/sessions")
async def listed(here: Here, q: str = "", page: int = 0, archived: bool = False) -> Response:
    """The last used first, or those in which these words were said."""
    whose = "" if here.person.owner else here.person.user_id
    page, size = max(0, min(page, 10_000)), conversations.PAGE
    if q.strip():
        found = await conversations.search(here.client, q[:500], whose)
    else:
        found = await conversations.recent(here.client, whose, page * size, size + 1, archived)
    more = not q.strip() and len(found) > size
    shown = {"found": found[:size], "q": q, "page": page, "more": more, "archived": archived}
    return await view(here, "sessions", "sessions.html", **shown)


@router.get("/sessions/of/{session:path}/export")
async def export(here: Here, format: str = "json") -> Response:
    """All that was said in one, as a file."""
    await visible.session(here.client, here.person.sight, here.session)
    if format not in _KINDS:
        raise HttpError(422, "that is no form of a conversation", "", "json or markdown")
    text = (await own.whole(here.client, here.session)).written("json" if format == "json" else "markdown")
    name = f"conversation.{'json' if format == 'json' else 'md'}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=_KINDS[format], headers=headers)


@router.get("/sessions/of/{session:path}")
async def one(here: Here) -> Response:
    """One of them: its name, its saves, and what can be done with it."""
    await visible.session(here.client, here.person.sight, here.session)
    card, saved = await asyncio.gather(_card(here), own.saved(here.client, here.person.user_id, _SAVED))
    if card is None and not here.own:
        raise HttpError(404, "there is no such conversation", "nothing was said there yet")
    return await view(here, "sessions", "session.html", card=card, saved=saved)


async def _card(here: Seat) -> dict[str, Any] | None:
    """None where nothing was said there yet."""
    try:
        return await listings.session(here.client, here.session)
    except Missing:
        return None


@router.post("/sessions/of/{session:path}/{does}")
async def change(here: Here, does: str) -> Response:
    """Rename it, put it away, save, clear or restore it."""
    await visible.session(here.client, here.person.sight, here.session)
    form = await here.request.form()
    there = f"/sessions/of/{quoted(here.session)}"
    tool, arguments, told = _asked(here, does, form)
    try:
        where = "" if "session_id" in arguments else here.session
        done = await calls.call(here.client, here.person, tool, arguments, session=where)
    except PromptDockError as error:
        return back(here, there, "bad", error.told())
    return back(here, there, "", told or str(done.get("told") or "Done."))


def _asked(here: Seat, does: str, form: FormData) -> tuple[str, dict[str, Any], str]:
    """The tool, its arguments, and what is told of it where it tells nothing itself."""
    about = {"session_id": here.session}
    match does:
        case "rename":
            return "rename_session", {**about, "title": given(form, "title", 200)}, "Renamed."
        case "archive":
            away = given(form, "archived", 1) == "1"
            return "archive_session", {**about, "archived": away}, "Put away." if away else "Listed again."
        case "save":
            return "save_context", {"description": given(form, "description", 200)}, ""
        case "clear":
            return "clear_context", {}, ""
        case "restore":
            return "restore_context", {"id": given(form, "id", 100)}, ""
    raise HttpError(404, "there is no such thing to do with a conversation")


# What leads to another conversation is sent to /chat: the page goes there as a whole.


@router.post("/chat/begin")
async def begin(here: Here) -> Response:
    """Another conversation, under a title."""
    form = await here.request.form()
    return await _made(here, "new_session", {"title": given(form, "title", 200)}, "/sessions")


@router.post("/chat/fork")
async def fork(here: Here) -> Response:
    """A conversation that goes on from a message of another one."""
    form = await here.request.form()
    of = given(form, "session", 200) or here.session
    await visible.session(here.client, here.person.sight, of)
    arguments = {"session_id": of, "message_id": given(form, "at", 200), "title": given(form, "title", 200)}
    return await _made(here, "fork_session", arguments, f"/chat/{quoted(of)}")


async def _made(here: Seat, tool: str, arguments: dict[str, Any], otherwise: str) -> Response:
    try:
        made = await calls.call(here.client, here.person, tool, arguments)
    except PromptDockError as error:
        return back(here, otherwise, "bad", error.told())
    return RedirectResponse(f"/chat/{quoted(str(made['session_id']))}", 303)


@router.post("/chat/import")
async def import_(here: Here) -> Response:
    """A conversation of a file."""
    form = await here.request.form(max_files=1)
    file = form.get("file")

    async def part(arguments: dict[str, Any]) -> dict[str, Any]:
        return await calls.call(here.client, here.person, "import_session", arguments)

    try:
        if file is None or isinstance(file, str):
            raise HttpError(422, "no file came along", "", "choose one that was exported")
        words = {"title": given(form, "title", 200), "use_memory": bool(given(form, "remember"))}
        made = await own.take_in(own.document(await file.read()), part, **words)
    except PromptDockError as error:
        return back(here, "/sessions", "bad", error.told())
    return RedirectResponse(f"/chat/{quoted(str(made['session_id']))}", 303)
