"""Server-sent events: what the process hears once, written for each reader, with ids to go on from."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from fastapi.sse import format_sse_event
from starlette.responses import StreamingResponse

from shared.client.fanout import OUTPUTS, TASKS, Fanout, Moment, is_cursor
from shared.errors import Unreachable

_AWAY_MS = 2000  # after which a browser tries again while Redis is away
EVERY = 15.0  # seconds after which a comment keeps a quiet line open
COMMENT = b": still here\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_BREAKS = str.maketrans({"\r": " ", "\n": " ", "\0": " "})

Hub = Fanout  # as the application has it


class EventStream(StreamingResponse):
    """An answer that goes on; no proxy gathers it."""

    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[bytes], status_code: int = 200) -> None:
        super().__init__(content, status_code, headers=_HEADERS)


def cursors(last: str | None, topics: Sequence[str]) -> dict[str, str]:
    """The cursors that `Last-Event-ID` holds, one for each topic in its order; from now on where it holds others."""
    parts = (last or "").split(",")
    if len(parts) != len(topics) or not all(is_cursor(part) for part in parts):
        parts = [""] * len(topics)
    return dict(zip(topics, parts, strict=True))


async def written(
    hub: Hub, topics: Sequence[str], last: str | None, sees: Callable[[Moment], bool], retry_ms: int = 1000
) -> AsyncIterator[bytes]:
    """The events of these topics after `Last-Event-ID`; ends when the process does, or the reader falls behind."""
    try:
        async for part in _read(hub, topics, last, sees, retry_ms):
            yield part
    except Unreachable:  # before it began: the browser comes again by itself
        yield format_sse_event(event="link", data_str='{"redis": "away"}', retry=_AWAY_MS)
    yield format_sse_event(event="again", data_str="{}")


async def _read(
    hub: Hub, topics: Sequence[str], last: str | None, sees: Callable[[Moment], bool], retry_ms: int
) -> AsyncIterator[bytes]:
    async with hub.reading(cursors(last, topics), sees) as reader:
        given = cursors(last, topics)
        shown = {topic: given[topic] or reader.cursors[topic] for topic in topics}
        yield format_sse_event(event="hello", data_str="{}", id=_id(shown, topics), retry=retry_ms)
        while (moments := await reader.take(EVERY)) is not None:
            yield b"".join(_lines(moments, shown, topics)) if moments else COMMENT


def data_of(payload: dict[str, Any]) -> str:
    """A payload as the line of an event."""
    return json.dumps(payload, ensure_ascii=False, default=str)


def _lines(moments: Iterable[Moment], shown: dict[str, str], topics: Sequence[str]) -> Iterable[bytes]:
    for moment in moments:
        if moment.cursor:
            shown[moment.topic] = moment.cursor
        yield _written(moment)
        yield f"id: {_id(shown, topics)}\n\n".encode() if moment.cursor else b"\n"


@lru_cache(256)
def _written(moment: Moment) -> bytes:
    """All but its id, once for all who read it."""
    return format_sse_event(event=moment.kind.translate(_BREAKS), data_str=moment.data)[:-1]


def _id(shown: dict[str, str], topics: Sequence[str]) -> str:
    return ",".join(shown[topic] or "0-0" for topic in topics)


__all__ = ["OUTPUTS", "TASKS", "EventStream", "Hub", "Moment", "cursors", "data_of", "written"]
