"""What a bare FastAPI application needs for the same streams: it makes the events up itself."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from starlette.responses import HTMLResponse, StreamingResponse

# Each tick is put into one element, with its moment in milliseconds.
_PAGE = """<!doctype html><title>bare</title><p id=said>Hello</p><script>
new EventSource('/0').addEventListener('tick', event => {
  document.getElementById('said').append(`${(JSON.parse(event.data).at * 1000).toFixed(0)}; `);
});
</script>"""


def create(sessions: int, pause: float) -> FastAPI:
    """A queue for each reader, and one task that fills them all."""
    queues: dict[int, set[asyncio.Queue[bytes]]] = {number: set() for number in range(sessions)}

    async def tell() -> None:
        while True:
            for number, readers in queues.items():
                data = f"event: tick\ndata: {json.dumps({'at': time.time()})}\nid: 1-1\n\n".encode()
                for queue in readers:
                    queue.put_nowait(data)
                if number % 10 == 9:
                    await asyncio.sleep(pause * 10 / sessions)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(tell())
        yield
        task.cancel()

    app = FastAPI(lifespan=lifespan)

    @app.get("/page")
    async def page() -> HTMLResponse:
        return HTMLResponse(_PAGE)

    @app.get("/{number}")
    async def stream(number: int) -> StreamingResponse:
        async def events() -> AsyncIterator[bytes]:
            queue: asyncio.Queue[bytes] = asyncio.Queue()
            queues[number].add(queue)
            while True:
                yield await queue.get()

        return StreamingResponse(events(), media_type="text/event-stream")

    return app


if __name__ == "__main__":
    config = uvicorn.Config(
        create(int(sys.argv[2]), float(sys.argv[3])),
        port=int(sys.argv[1]),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run()
    os._exit(0)
