"""What happens, as server-sent events: for a whole page, and for one session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.requests import Request

from gateways.web.access import Line, Visitor
from gateways.web.events import OUTPUTS, TASKS, EventStream, Moment, written
from shared.bus.messages import SessionId
from shared.client.views import visible

router = APIRouter(prefix="/api", tags=["events"])

LastId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=2000)]


@router.get("/events", response_class=EventStream)
async def events(
    request: Request,
    client: Line,
    visitor: Visitor,
    session: Annotated[list[SessionId], Query(max_length=20)] = [],  # noqa: B006 - FastAPI copies it
    last: LastId = None,
) -> EventStream:
    """What concerns this person: `output`, `changed`, `presence`, `link`, the live events of the sessions that are
    named, and for the owner those of all tasks. It goes on after `Last-Event-ID`; `gap` says that something between is
    not kept any more.
    """
    named = list(dict.fromkeys(session))
    for one in named:
        await visible.session(client, visitor.sight, one)
    topics = [OUTPUTS, *([TASKS] if visitor.owner else []), *named]

    def sees(moment: Moment) -> bool:
        output = moment.output
        if output is None or visitor.owner:
            return True
        return output.user_id == visitor.user_id or output.session_id in named

    return EventStream(written(request.app.state.hub, topics, last, sees))


@router.get("/sessions/{session}/events", response_class=EventStream)
async def of_session(
    request: Request, session: SessionId, client: Line, visitor: Visitor, last: LastId = None
) -> EventStream:
    """The live events of one session, as docs/wire.md lists them, from now on or after `Last-Event-ID`."""
    await visible.session(client, visitor.sight, session)

    def sees(moment: Moment) -> bool:
        return moment.topic == session or moment.kind == "link"

    return EventStream(written(request.app.state.hub, [session], last, sees))
