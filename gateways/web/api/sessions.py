"""Conversations: which there are, what was said in them, copies of them, and steering what runs in one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import StringConstraints
from starlette.responses import Response

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Body, Cursor, Limit, NamePart
from gateways.web.calls import call
from shared.bus.messages import Id, SessionId, Words
from shared.client.types import Card
from shared.client.views import listings, visible
from shared.client.views.conversation import own
from shared.client.views.conversation.transcript import transcript
from shared.client.views.pending import pending
from shared.errors import UsageError

router = APIRouter(prefix="/api/sessions", tags=["sessions"])

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
About = Annotated[str, StringConstraints(max_length=200)]


class NewSession(Body):
    """What it is called."""

    title: Title


class SessionChange(Body):
    """What is to be different: another title, put away or taken back, the profile that answers ("default": none)."""

    title: Title | None = None
    archived: bool | None = None
    profile_id: NamePart | None = None


class SaveRequest(Body):
    """What it is about; without it the summary's first words."""

    description: About = ""


class RestoreRequest(Body):
    """What was saved: its id, or the first letters of it or of its description."""

    id: NamePart


class ForkRequest(Body):
    """The last message of the fork, by its id; without it the newest."""

    message_id: About = ""
    title: About = ""


class StopRequest(Body):
    """Which turn, or which request of it; without either whatever runs."""

    turn_id: Id | None = None
    request_id: Id | None = None


class AmendRequest(Body):
    """Words for the turn that runs."""

    content: Words
    turn_id: Id | None = None


@router.get("")
async def listing(
    client: Line,
    visitor: Visitor,
    query: Annotated[str, Query(max_length=500)] = "",
    project: Annotated[str, Query(max_length=200)] = "",
    archived: bool = False,
    words: Annotated[str, Query(max_length=500)] = "",
    after: Cursor = "",
    limit: Limit = 50,
) -> dict[str, Any]:
    """Conversations that this person sees, the last used first; `query` is part of a title.

    With `words` theirs in which any of these was said, archived ones too, each with the line that fits best.
    """
    if words.strip():
        return {"sessions": await own.search(client, visitor.user_id, words, limit), "next": ""}
    page = await listings.sessions(
        *(client, visitor.sight), query=query, project=project, archived=archived, after=after, limit=limit
    )
    return {"sessions": page.items, "next": page.next}


@router.post("", status_code=201)
async def new(asked: NewSession, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Begin another conversation."""
    return await call(client, visitor, "new_session", {"title": asked.title})


@router.post("/import", status_code=201)
async def import_(
    request: Request,
    client: Line,
    visitor: Visitor,
    title: Annotated[str, Query(max_length=200)] = "",
    use_memory: bool = True,
    session_id: Annotated[str, Query(max_length=200, description="Of the part before.")] = "",
    after: Annotated[int, Query(ge=0, description="Messages that came before this part.")] = 0,
) -> dict[str, Any]:
    """Make a conversation of a document, as `export` gives it: {title?, messages: [{role, content, …}]}."""

    async def part(arguments: dict[str, Any]) -> dict[str, Any]:
        return await call(client, visitor, "import_session", arguments)

    given = {"title": title, "use_memory": use_memory, "session_id": session_id, "after": after}
    return await own.take_in(own.document(await request.body()), part, **given)


@router.get("/saved")
async def saved(client: Line, visitor: Visitor, limit: Limit = 50) -> dict[str, Any]:
    """What this person saved of conversations, the newest first."""
    return {"saved": [one.card() for one in await own.saved(client, visitor.user_id, limit)]}


@router.get("/{session}")
async def one(session: SessionId, client: Line, visitor: Visitor) -> Card:
    """One of them."""
    await visible.session(client, visitor.sight, session)
    return await listings.session(client, session)


@router.patch("/{session}")
async def change(session: SessionId, asked: SessionChange, client: Line, visitor: Visitor) -> Card:
    """Call it something else, put it away or take it back, or have another profile answer there."""
    await visible.session(client, visitor.sight, session)
    if not asked.model_fields_set:
        raise UsageError("nothing is to be changed", "no field was given", "give a title, for example")
    if asked.profile_id is not None:
        chosen = {"profile_id": "" if asked.profile_id == "default" else asked.profile_id}
        await call(client, visitor, "choose_profile", chosen, session)
    if asked.title is not None:
        await call(client, visitor, "rename_session", {"session_id": session, "title": asked.title})
    if asked.archived is not None:
        await call(client, visitor, "archive_session", {"session_id": session, "archived": asked.archived})
    return await listings.session(client, session)


@router.get("/{session}/export")
async def export(session: SessionId, client: Line, visitor: Visitor, format: own.Format = "json") -> Response:
    """All that was said there: JSON that `import` reads, or Markdown."""
    await visible.session(client, visitor.sight, session)
    text = (await own.whole(client, session)).written(format)
    kind = "application/json" if format == "json" else "text/markdown; charset=utf-8"
    return Response(text, media_type=kind)


@router.post("/{session}/fork", status_code=201)
async def fork(
    session: SessionId, client: Line, visitor: Visitor, asked: ForkRequest | None = None
) -> dict[str, Any]:
    """Begin a conversation that goes on from a message of this one, which stays as it is."""
    await visible.session(client, visitor.sight, session)
    asked = asked or ForkRequest()
    words = {"session_id": session, "message_id": asked.message_id, "title": asked.title}
    return await call(client, visitor, "fork_session", words)


@router.post("/{session}/clear")
async def clear(session: SessionId, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Begin it anew: nothing said before is shown to the model any more; it stays in the history."""
    await visible.session(client, visitor.sight, session)
    return await call(client, visitor, "clear_context", {}, session)


@router.post("/{session}/save")
async def save(
    session: SessionId, client: Line, visitor: Visitor, asked: SaveRequest | None = None
) -> dict[str, Any]:
    """Keep it as it is, with a summary; it goes on."""
    await visible.session(client, visitor.sight, session)
    words = {"description": (asked or SaveRequest()).description}
    return await call(client, visitor, "save_context", words, session)


@router.post("/{session}/restore")
async def restore(
    session: SessionId, asked: RestoreRequest, client: Line, visitor: Visitor
) -> dict[str, Any]:
    """Go on, in this conversation, where a saved one was."""
    await visible.session(client, visitor.sight, session)
    return await call(client, visitor, "restore_context", {"id": asked.id}, session)


@router.get("/{session}/context")
async def context(session: SessionId, client: Line, visitor: Visitor) -> dict[str, Any]:
    """How full its window is."""
    await visible.session(client, visitor.sight, session)
    return await call(client, visitor, "get_context", {}, session)


@router.get("/{session}/messages")
async def messages(
    session: SessionId, client: Line, visitor: Visitor, before: Cursor = "", limit: Limit = 40
) -> dict[str, Any]:
    """What was said, a page of it, the oldest first; `before` is the cursor of what comes above it."""
    await visible.session(client, visitor.sight, session)
    listings.moment(before)
    if not before:
        await own.settled(client)
    page = await transcript(client, session, before, limit)
    return {"messages": [asdict(entry) for entry in page.entries], "before": page.before}


@router.get("/{session}/turns")
async def turns(
    session: SessionId, client: Line, visitor: Visitor, after: Cursor = "", limit: Limit = 50
) -> dict[str, Any]:
    """Chatter's turns there, the newest first; GET /api/turns/ID has the steps of one."""
    await visible.session(client, visitor.sight, session)
    page = await listings.turns(client, session, after=after, limit=limit)
    return {"turns": page.items, "next": page.next}


@router.get("/{session}/pending")
async def waits(session: SessionId, client: Line, visitor: Visitor) -> dict[str, Any]:
    """What was said there and has not ended."""
    await visible.session(client, visitor.sight, session)
    return {"pending": [row for row in await pending(client) if row["session"] == session]}


@router.post("/{session}/stop", status_code=202)
async def stop(
    session: SessionId, client: Line, visitor: Visitor, asked: StopRequest | None = None
) -> dict[str, Any]:
    """End what runs there."""
    await visible.session(client, visitor.sight, session)
    asked = asked or StopRequest()
    sent = await client.stop(visitor.user_id, session, asked.turn_id, asked.request_id)
    return {"id": sent.id, "outcome": sent.outcome}


@router.post("/{session}/amend", status_code=202)
async def amend(session: SessionId, asked: AmendRequest, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Add words to the turn that runs there."""
    await visible.session(client, visitor.sight, session)
    sent = await client.amend(asked.content, visitor.user_id, session, asked.turn_id)
    return {"id": sent.id, "outcome": sent.outcome}
