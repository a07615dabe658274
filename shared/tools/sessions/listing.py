"""Category sessions: a person's conversations: which there are, what they are called, and copies of them."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from shared import people
from shared.bus.keys import CHATTER
from shared.conversation import copies, exchange, reading
from shared.conversation import listing as known
from shared.errors import Conflict, ToolError, UsageError
from shared.guard.permissions.touching import touching
from shared.store.origin import MADE, Origin
from shared.store.records import ConversationMessage, Session
from shared.store.row import derived
from shared.tools.context import Context
from shared.tools.registry import Result
from shared.tools.sessions import category as family

category = family.sessions()
_RECORDS = touching("records")
_FROM_A_FILE = "an imported conversation"
SessionKey = Annotated[str, Field(max_length=200)]
SessionTitle = Annotated[str, Field(max_length=200)]


def _named(arguments: dict[str, Any]) -> str:
    return str(arguments.get("session_id") or "")


async def _key(here: Context, kind: str) -> str:
    """The id of a conversation that this call makes; run again after a crash, it is the same.

    It belongs to whom its first message is from: nobody else can guess it.
    """
    if here.intended and (kept := str(here.intended.get("session_id", ""))):
        return kept
    key = f"{kind}-{secrets.token_hex(8)}"
    await here.intend({"session_id": key})
    return key


def _titled(title: str) -> str:
    line = " ".join(title.split())
    if not line:
        raise ToolError("a conversation is called by something", "the title is empty", "")
    return line


def _card(row: Session) -> dict[str, Any]:
    state = {"archived": True} if row.archived else {}
    state |= {} if people.signs(row.user_id or "") else {"unsigned": True}
    at = row.last_active_at.isoformat()
    return {"session_id": row.key, "title": row.title or row.key, "last_active": at, **state}


@category.tool(effect="pure", touches=_RECORDS)
async def list_sessions(
    here: Context,
    archived: bool = False,
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> Result:
    """The person's conversations, the last used first; with `archived` those that were put away.

    `unsigned`: it was said in their name, and nobody signed it.
    """
    rows = await known.of_person(here.store, family.person(here), archived, limit, offset)
    return {"sessions": [_card(row) for row in rows], **family.marks(here, rows)}


@category.tool(effect="pure", touches=_RECORDS, detail=lambda arguments: str(arguments.get("query", "")))
async def search_sessions(
    here: Context,
    query: Annotated[str, Field(min_length=1, max_length=500)],
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
) -> Result:
    """Conversations of the person in which any of these words was said, each with the line that fits best."""
    found = await known.search(here.store, family.person(here), query, limit)
    cards = [{**_card(one.row), "found": one.line, "message_id": one.message_id} for one in found]
    return {"sessions": cards, **family.marks(here, [one.row for one in found])}


@category.tool(effect="once", probes=True, touches=_RECORDS)
async def new_session(here: Context, title: SessionTitle) -> Result:
    """Begin another conversation of the person's under a title; who opens it by its id speaks there."""
    called = _titled(title)
    key = await _key(here, "talk")
    row = Session(
        id=derived("session", key),
        key=key,
        user_id=family.person(here),
        title=called,
        titled="person",
        origin=here.origin.kept(),
    )
    await _insert(here, row, [])
    return {"session_id": key, "title": called}


@category.tool(effect="idempotent", touches=_RECORDS, detail=_named)
async def rename_session(here: Context, session_id: SessionKey, title: SessionTitle) -> Result:
    """Call one of the person's conversations something else; the title stays."""
    row, called = await family.own(here, session_id), _titled(title)
    await here.store.update(Session, {"title": called, "titled": "person"}, {"key": row.key})
    return {"session_id": row.key, "title": called, "before": row.title}


@category.tool(effect="idempotent", touches=_RECORDS, detail=_named)
async def archive_session(here: Context, session_id: SessionKey, archived: bool = True) -> Result:
    """Put one of the person's conversations away, so that it is listed no more, or with `archived` false take it back.

    Nothing of it is deleted: it is found by its words, and can be spoken in.
    """
    row = await family.own(here, session_id)
    await here.store.update(Session, {"archived": archived}, {"key": row.key})
    return {"session_id": row.key, "title": row.title, "archived": archived}


@category.tool(effect="once", probes=True, touches=_RECORDS, detail=_named)
async def fork_session(
    here: Context,
    session_id: SessionKey,
    message_id: Annotated[str, Field(max_length=200)] = "",
    title: SessionTitle = "",
) -> Result:
    """Begin a conversation that goes on from a message of another one, the newest by default; that one stays as it is.

    A message is named by its id as export_session and search_sessions give it, or by its number: #4. An answer's
    means all that was done for it.
    """
    whole = await family.own(here, session_id)
    key = await _key(here, "fork")
    called = _titled(title or f"{whole.title or whole.key} (fork)")
    made, rows = await copies.fork(here.store, whole, message_id, key, called, family.person(here))
    if told := family.marks(here, [whole]).get(MADE):  # it goes on in another's name than it was said
        made = made.model_copy(update={"origin": replace(Origin.of(made.origin), foreign=told).kept()})
    await _insert(here, made, rows)
    messages = sum(isinstance(row, ConversationMessage) for row in rows)
    return {
        "session_id": key,
        "title": called,
        "messages": messages,
        "of": whole.key,
        **family.marks(here, [whole]),
    }


@category.tool(effect="pure", touches=_RECORDS, detail=_named, foreign=True)
async def export_session(
    here: Context,
    session_id: SessionKey,
    format: Literal["json", "markdown"] = "json",
    limit: Annotated[int, Field(ge=1, le=500)] = 100,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> Result:
    """What was said in one of the person's conversations, as a document: JSON that import_session reads, or Markdown.

    Calls of tools are left out. Of a long one it gives `limit` messages, and `next` is the offset of those behind.
    """
    row = await family.own(here, session_id)
    said = await reading.lines(here.store, row.key)
    part, behind = said[offset : offset + limit], offset + limit
    write = exchange.as_json if format == "json" else exchange.as_markdown
    found = {
        "session_id": row.key,
        "title": row.title,
        "messages": len(said),
        "content": write(row.title, part),
    }
    return found | ({"next": behind} if behind < len(said) else {})


@category.tool(effect="once", probes=True, touches=_RECORDS, detail=_named)
async def import_session(
    here: Context,
    content: Annotated[str, Field(min_length=1)],
    title: SessionTitle = "",
    session_id: SessionKey = "",
    after: Annotated[int, Field(ge=0)] = 0,
    use_memory: bool = True,
) -> Result:
    """Make a conversation of a JSON document: {title?, messages: [{role, content, id?, user_name?, timestamp?}]}.

    Ids and times of the messages are kept, and they are remembered, unless `use_memory` is false. A long one comes in
    parts: those behind the first name the `session_id` that the first gave, and in `after` how many messages came
    before.
    """
    user = family.person(here)
    try:
        document = exchange.parse(content)
    except UsageError as error:
        raise ToolError(error.what, error.why, error.fix) from None
    key = session_id or await _key(here, "imported")
    called = _titled(title or document.title or "Imported conversation")
    origin = replace(here.origin, foreign=here.origin.foreign or _FROM_A_FILE)
    session, rows = copies.imported(document, key, called, user, origin.kept(), after)
    memories = copies.remembered(document, session, user, CHATTER, after) if use_memory else []
    if session_id:
        await _go_on(here, session_id, after)
        await here.store.upsert([*rows, *memories])
    else:
        await _insert(here, session, [*rows, *memories])
    empty = len(document.messages) - len(rows)
    return {"session_id": key, "title": called, "messages": after + len(rows)} | (
        {"empty": empty} if empty else {}
    )


async def _go_on(here: Context, key: str, after: int) -> None:
    """Another part may only follow what was imported, and only while nobody has spoken there."""
    await family.own(here, key)
    where: dict[str, Any] = {"session_id": key}
    there = await here.store.count(ConversationMessage, where)
    ours = await here.store.count(ConversationMessage, where | {"source": copies.IMPORTED})
    if not there or there != ours:
        raise ToolError(f"nothing more can be imported into {key!r}", "it is a conversation by itself", "")
    if after < 1 or after > there:
        raise ToolError(
            f"no part can begin behind message {after}", f"{there} messages are there", f"after: {there}"
        )


async def _insert(here: Context, session: Session, beside: list[Any]) -> None:
    """All of it or nothing; a call that is run again finds it there."""
    try:
        await here.store.insert(session, beside)
    except Conflict:
        found = await here.store.select(Session, {"key": session.key}, limit=1)
        if not found or found[0].user_id != session.user_id:
            raise
