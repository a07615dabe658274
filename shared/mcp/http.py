"""A server at an address, by streamable HTTP: each answer and what comes in a while are bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from shared.mcp.bounds import MESSAGE, Watch
from shared.mcp.config import ServerSpec

if TYPE_CHECKING:
    import httpx2

_CONNECT = 10.0  # seconds


@asynccontextmanager
async def transport(spec: ServerSpec, watch: Watch) -> AsyncIterator[Any]:
    """The streams of a session with the server at this address."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Bounded(httpx2.AsyncByteStream):
        """What comes, as long as it is not too much."""

        def __init__(self, stream: Any, events: bool) -> None:
            self._stream, self._events = stream, events

        async def __aiter__(self) -> AsyncIterator[bytes]:
            came = 0
            async for data in self._stream:
                came += len(data)
                watch.took(len(data), data.count(b"data:") if self._events else 0)
                if came > MESSAGE and not self._events:
                    watch.too_long()
                yield data

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "").lower()
        if response.headers.get("content-encoding", "identity") != "identity":
            watch.flooded("it packed its answer, which was not asked for")
        response.stream = Bounded(response.stream, kind.startswith("text/event-stream"))

    timeout = httpx2.Timeout(_CONNECT, read=spec.timeout + _CONNECT)
    headers = {**spec.headers, "accept-encoding": "identity"}
    hooks: Any = {"response": [bound]}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(spec.url, http_client=client, max_sse_event_size=MESSAGE) as streams,
    ):
        yield streams
