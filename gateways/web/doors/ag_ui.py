"""/ag-ui: the cluster as an agent for clients that speak AG-UI, over server-sent events."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from gateways.web.access import Line, Person, Visitor
from gateways.web.api.chat import begun, opened
from gateways.web.errors import HttpError
from gateways.web.events import COMMENT, EVERY, EventStream
from shared.bus.messages import SessionId, Words
from shared.client.client import Client
from shared.client.turn import Asking, TurnEvent, going_on
from shared.client.views import visible
from shared.client.views.permissions import approvals

if TYPE_CHECKING:
    from ag_ui.core import ResumeEntry, RunAgentInput

router = APIRouter(tags=["AG-UI"])
_THREAD: TypeAdapter[str] = TypeAdapter(SessionId)
_WORDS: TypeAdapter[str] = TypeAdapter(Words)
_DECISIONS = ("allow_once", "always", "deny")


@router.post("/ag-ui", response_class=EventStream)
async def run(request: Request, client: Line, visitor: Visitor) -> EventStream:
    """A run: the last message of the user is said in the thread, or `resume` answers what an earlier run waits for."""
    asked = _read(await request.body())
    if asked.resume:
        events = await _resumed(request, client, visitor, asked)
    else:
        asking = Asking(_last(asked), visitor.user_id, asked.thread_id, roles=visitor.roles, source="ag-ui")
        events = await opened(request, client, visitor, asking)
    return EventStream(_lines(asked, events))


def _read(body: bytes) -> RunAgentInput:
    if find_spec("ag_ui") is None:
        raise HttpError(
            501, "this door is not installed", "it needs an extra", 'pip install "promptdock[ag-ui]"'
        )
    from ag_ui.core import RunAgentInput

    try:
        asked = RunAgentInput.model_validate_json(body)
        _THREAD.validate_python(asked.thread_id)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "threadId"
        fix = "see the RunAgentInput of AG-UI"
        raise HttpError(422, "the run cannot be understood", f"{place}: {first['msg'][:200]}", fix) from None
    return asked


def _last(asked: RunAgentInput) -> str:
    """The words of the user that are new; HttpError where there are none, or more than words."""
    newest = asked.messages[-1] if asked.messages else None
    content: Any = getattr(newest, "content", None) if newest is not None and newest.role == "user" else None
    if isinstance(content, list):
        if any(part.type != "text" for part in content):
            raise HttpError(
                422, "a part of the message cannot be read here", "agents read text", "send text alone"
            )
        content = "\n".join(part.text for part in content)
    try:
        return _WORDS.validate_python(content)
    except ValidationError:
        why = "the last message is not a user's, or is empty"
        raise HttpError(422, "there is nothing to answer", why, "end with one") from None


async def _resumed(
    request: Request, client: Client, person: Person, asked: RunAgentInput
) -> AsyncIterator[TurnEvent]:
    """Answer the request, and go on with the turn that put it."""
    await visible.session(client, person.sight, asked.thread_id)
    entries = asked.resume or []
    if len(entries) != 1:
        raise HttpError(
            422, "one request is answered by a run", f"resume has {len(entries)}", "send one entry"
        )
    entry = entries[0]
    card = await approvals.find(client, entry.interrupt_id)
    if not person.sight.sees(card.user_id):
        raise visible.hidden("approval", entry.interrupt_id)
    asking = Asking("", person.user_id, asked.thread_id, card.turn, source="ag-ui")

    async def act() -> None:
        decision, reason = _decision(entry)
        await approvals.answer(client, card.id, decision, person.user_id, reason=reason, roles=person.roles)

    return await begun(going_on(client, request.app.state.hub, asking, act))


def _decision(entry: ResumeEntry) -> tuple[Any, str | None]:
    given = entry.payload if isinstance(entry.payload, dict) else {}
    decision = "deny" if entry.status == "cancelled" else given.get("decision", "allow_once")
    if decision not in _DECISIONS:
        raise HttpError(422, f"{str(decision)[:40]!r} is no decision", f"there are: {', '.join(_DECISIONS)}")
    reason = given.get("reason")
    return decision, reason if isinstance(reason, str) and reason else None


async def _lines(asked: RunAgentInput, events: AsyncIterator[TurnEvent]) -> AsyncIterator[bytes]:
    from ag_ui.encoder import EventEncoder

    from gateways.web.doors.ag_ui_events import Translator

    translator, encoder, quiet = Translator(asked.thread_id, asked.run_id), EventEncoder(), time.monotonic()
    for told in translator.begin(_warnings(asked)):
        yield encoder.encode(told).encode()
    async for event in events:
        for told in translator.take(event):
            quiet = time.monotonic()
            yield encoder.encode(told).encode()
        if translator.ended:
            return
        if time.monotonic() - quiet > EVERY:
            quiet = time.monotonic()
            yield COMMENT


def _warnings(asked: RunAgentInput) -> list[str]:
    given = {
        "tools of the client are not called: the agents have their own": asked.tools,
        "context of the client does not reach an agent: put it into the message": asked.context,
        "state of the client is not kept": asked.state,
    }
    return [words for words, value in given.items() if value]
