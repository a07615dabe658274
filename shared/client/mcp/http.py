"""The server over streamable HTTP, for a gateway to mount: made when the first request comes.

Each request stands for itself, so that nothing is held for programs that went away. Who may come in, and from which
pages, is the gateway's to check before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from shared.client.client import Client
from shared.client.fanout import Fanout
from shared.client.mcp.callers import Who

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class HttpDoor:
    """An ASGI application for one address; `running` is around the time in which it may be called."""

    def __init__(self, client: Client, hub: Fanout, who: Who) -> None:
        self._client, self._hub, self._who = client, hub, who
        self._wanted = asyncio.Event()
        self._made: asyncio.Future[ASGIApp] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HttpDoor]:
        """Until it is left, requests are served."""
        self._made = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._serve(self._made))
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        assert self._made is not None, "it is called while it runs"
        self._wanted.set()
        await (await asyncio.shield(self._made))(scope, receive, send)

    async def _serve(self, made: asyncio.Future[ASGIApp]) -> None:
        await self._wanted.wait()
        try:
            from mcp.server.transport_security import TransportSecuritySettings

            from shared.client.mcp.jobs import Jobs
            from shared.client.mcp.server import make

            async with Jobs(self._client, self._hub) as jobs:
                server = make(self._client, jobs, self._who)
                # The gateway has looked at Host and Origin.
                open_ = TransportSecuritySettings(enable_dns_rebinding_protection=False)
                server.streamable_http_app(stateless_http=True, transport_security=open_)
                manager = server.session_manager
                async with manager.run():
                    made.set_result(manager.handle_request)
                    await asyncio.Event().wait()
        except Exception as error:
            if not made.done():
                made.set_exception(error)
            raise
