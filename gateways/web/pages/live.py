"""What happens while a page is open: one stream for all tabs of a browser, of all conversations that they show."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.sse import format_sse_event

from gateways.web.access import Person
from gateways.web.events import EVERY, OUTPUTS, TASKS, EventStream, Hub, Moment, cursors
from gateways.web.pages.frame import Here, Seat
from shared.client import Heard
from shared.client.views import visible
from shared.errors import Unreachable

router = APIRouter()
_MOST = 20  # conversations of one browser
_COMMENT = b": still here\n\n"
_RETRY = 1000  # ms
_AWAY = '{"topic": "", "kind": "link", "at": "", "data": {"redis": "away"}}'


@router.get("/live")
async def live(
    here: Here,
    request: Request,
    c: Annotated[list[str] | None, Query(max_length=_MOST)] = None,
    after: str = "",
    last_event_id: Annotated[str | None, Header()] = None,
) -> EventStream:
    """Each event is `{topic, kind, data}`; it goes on after `Last-Event-ID`, or after what the script knows."""
    sessions = list(dict.fromkeys(c or []))
    for session in sessions:
        await visible.session(here.client, here.person.sight, session)
    topics = (OUTPUTS, TASKS, *sessions)
    hub = request.app.state.hub
    assert isinstance(hub, Hub)
    return EventStream(_written(hub, topics, last_event_id or after, here))


async def _written(hub: Hub, topics: tuple[str, ...], last: str, here: Seat) -> AsyncIterator[bytes]:
    try:
        async for part in _read(hub, topics, last, here):
            yield part
    except Unreachable:  # before it began: the browser comes again by itself
        yield format_sse_event(data_str=_AWAY, retry=_RETRY)
    yield format_sse_event(event="again", data_str="{}")


async def _read(hub: Hub, topics: tuple[str, ...], last: str, here: Seat) -> AsyncIterator[bytes]:
    given = cursors(last, topics)
    async with hub.reading(given, lambda moment: _for(here.person, topics, moment)) as reader:
        shown = {topic: given[topic] or reader.cursors[topic] for topic in topics}
        yield _line("hello", shown, topics)
        while (moments := await reader.take(EVERY)) is not None:
            if not moments:
                yield _COMMENT
                continue
            written = []
            for moment in moments:
                if moment.cursor:
                    shown[moment.topic] = moment.cursor
                _acknowledge(here, topics, moment)
                written.append(_line(_told(moment), shown, topics))
            yield b"".join(written)


def _acknowledge(here: Seat, topics: tuple[str, ...], moment: Moment) -> None:
    """What is shown in an open page to the person whom it is for is not told them again."""
    said = moment.output
    if said is not None and said.user_id == here.person.user_id and said.session_id in topics:
        here.client.shown(Heard(said, moment.cursor))


def _for(person: Person, topics: tuple[str, ...], moment: Moment) -> bool:
    """Whether it is for this person's eyes."""
    said = moment.output
    return said is None or person.owner or said.user_id == person.user_id or said.session_id in topics


def _told(moment: Moment) -> str:
    head = json.dumps({"topic": moment.topic, "kind": moment.kind, "at": moment.cursor}, ensure_ascii=True)
    return f'{head[:-1]}, "data": {moment.data}}}'


def _line(told: str, shown: dict[str, str], topics: tuple[str, ...]) -> bytes:
    at = ",".join(shown[topic] or "0-0" for topic in topics)
    if told == "hello":
        return format_sse_event(event="hello", data_str=json.dumps({"at": at}), id=at, retry=_RETRY)
    return format_sse_event(data_str=told, id=at)
