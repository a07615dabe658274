"""A TCP proxy that has faults: it holds back one direction or both, cuts, delays, or refuses.

What is held back waits in buffers and goes on when the proxy is healed, as after a real partition. A
connection that was made half-open never carries anything again, whatever is healed.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType


class _Link:
    """One connection through the proxy."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self.task = task
        self.dead = False  # half-open: it takes everything and passes nothing on


class Proxy:
    """`async with Proxy(url) as proxy:` and then connect to `proxy.url`."""

    def __init__(self, url: str) -> None:
        self._login, _, place = url.partition("://")[2].rpartition("@")
        self._port = int(place.rpartition(":")[2])
        self._links: set[_Link] = set()
        self._flows = {"there": asyncio.Event(), "back": asyncio.Event()}
        self.refuses = False  # new connections are closed at once
        self.delay = 0.0  # seconds by which each piece is late
        self.heal()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.url = f"redis://{self._login}@127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        links = list(self._links)
        self.cut()
        await asyncio.gather(*(link.task for link in links), return_exceptions=True)
        await self._server.wait_closed()

    def partition(self, *directions: str) -> None:
        """Hold back what goes `there`, `back`, or both; new connections are made, and held back too."""
        for direction in directions or ("there", "back"):
            self._flows[direction].clear()

    def half_open(self) -> None:
        """The connections of now are dead from here on, and nobody is told; new ones work."""
        for link in self._links:
            link.dead = True

    def cut(self) -> None:
        """End the connections of now."""
        for link in list(self._links):
            link.task.cancel()

    def heal(self) -> None:
        """Everything flows again."""
        self.refuses, self.delay = False, 0.0
        for flow in self._flows.values():
            flow.set()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        link = _Link(task)
        self._links.add(link)
        ends = [writer]
        try:
            if not self.refuses:
                to, back = await asyncio.open_connection("127.0.0.1", self._port)
                ends.append(back)
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._carry(link, "there", reader, back))
                    group.create_task(self._carry(link, "back", to, writer))
        except (asyncio.CancelledError, OSError, ExceptionGroup):
            pass
        finally:
            self._links.discard(link)
            for end in ends:
                end.transport.abort()
                with contextlib.suppress(OSError):
                    await end.wait_closed()

    async def _carry(
        self, link: _Link, direction: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(65536):
            await self._flows[direction].wait()
            if self.delay:
                await asyncio.sleep(self.delay)
            if not link.dead:
                writer.write(data)
                await writer.drain()
        raise EOFError
