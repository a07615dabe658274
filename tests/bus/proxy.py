"""A TCP proxy of ours before a server: its connections can be cut, or stay open and carry nothing more."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType


class Proxy:
    """`async with Proxy(url) as proxy:` and then connect to `proxy.url`."""

    def __init__(self, url: str) -> None:
        self._port = int(url.rpartition(":")[2])
        self._login = url.partition("://")[2].rpartition("@")[0]
        self._links: list[_Link] = []
        self.deaf = False  # new connections are taken and carry nothing

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        login = f"{self._login}@" if self._login else ""
        self.url = f"redis://{login}127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for _ in range(3):  # what was accepted just now has no link yet
            self.cut()
            await asyncio.gather(*(link.done for link in self._links), return_exceptions=True)
            await asyncio.sleep(0.01)
        await self._server.wait_closed()

    @property
    def connections(self) -> int:
        """How many were made so far."""
        return len(self._links)

    def freeze(self) -> None:
        """The connections of now are half-open from here on: nothing arrives, nobody is told."""
        for link in self._links:
            link.frozen = True

    def cut(self) -> None:
        """End the connections of now."""
        for link in self._links:
            link.done.cancel()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        link = _Link(task, self.deaf)
        self._links.append(link)
        to, back = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(link.carry(reader, back))
                group.create_task(link.carry(to, writer))
        except (asyncio.CancelledError, ExceptionGroup):
            pass
        finally:
            for end in (writer, back):  # both before anything is awaited: a second cut may come
                end.close()
            for end in (writer, back):
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await end.wait_closed()


class _Link:
    def __init__(self, done: asyncio.Task[None], frozen: bool) -> None:
        self.done, self.frozen = done, frozen

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if not self.frozen:
                writer.write(data)
                await writer.drain()
        raise EOFError
