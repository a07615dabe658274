"""The same hops on bare sockets: commands packed by hand. What the machine allows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import hiredis

from benchmarks.side import Side, answer, question


class _Line(asyncio.Protocol):
    def __init__(self, take: Callable[[Any], None]) -> None:
        self._take, self._reader = take, hiredis.Reader()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            self._take(reply)


def _packed(*arguments: bytes) -> bytes:
    parts = b"".join(b"$%d\r\n%b\r\n" % (len(argument), argument) for argument in arguments)
    return b"*%d\r\n%b" % (len(arguments), parts)


class Raw(Side):
    """The floor: nothing can be faster through one server."""

    name, about = "raw", "the same two hops on bare sockets, packed by hand; kept nowhere"

    async def _connect(self, channel: bytes, take: Callable[[bytes], None]) -> None:
        """Two connections: one listens on `channel`, one publishes."""
        place, loop = urlsplit(self.url), asyncio.get_running_loop()
        host, port = place.hostname or "127.0.0.1", place.port or 6379
        ready = asyncio.Event()

        def came(reply: Any) -> None:
            if reply[0] == b"message":
                take(reply[2])
            elif reply[0] == b"subscribe":
                ready.set()

        self._lines = [
            (await loop.create_connection(lambda: _Line(came), host, port))[0],
            (await loop.create_connection(lambda: _Line(lambda _: None), host, port))[0],
        ]
        for line in self._lines if place.password else []:
            line.write(_packed(b"AUTH", str(place.username).encode(), str(place.password).encode()))
        self._lines[0].write(_packed(b"SUBSCRIBE", channel))
        await ready.wait()

    async def serve(self) -> None:
        def take(data: bytes) -> None:
            self._lines[1].write(_packed(b"PUBLISH", b"raw-output", answer(json.loads(data)["id"]).encode()))

        await self._connect(b"raw-input", take)
        await asyncio.Event().wait()

    async def open(self) -> None:
        await self._connect(b"raw-output", self.heard)

    async def send(self, request: str) -> None:
        self._lines[1].write(_packed(b"PUBLISH", b"raw-input", question(request)))

    async def close(self) -> None:
        for line in self._lines:
            line.close()
        await asyncio.sleep(0)  # the loop lets go of them
