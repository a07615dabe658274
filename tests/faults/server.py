"""The Redis of a fault run: the embedded server, which can be killed, filled and made read-only."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

from shared.bus.embedded import Embedded
from tests.support.valkey import free_port


class Server(Embedded):
    """A server whose options outlive its restart."""

    def __init__(self, home: Path, **options: str) -> None:
        super().__init__(home, free_port())
        self._options = options

    async def up(self) -> None:
        """Start it; what was acknowledged before is there again."""
        await asyncio.to_thread(self.start)
        for name, value in self._options.items():
            await self.tell("CONFIG", "SET", name.replace("_", "-"), value)

    async def die(self) -> None:
        """kill -9."""
        note = json.loads((self.home / "redis.json").read_text())
        os.kill(int(note["pid"]), signal.SIGKILL)
        await asyncio.to_thread(self.stop)

    async def tell(self, *words: str) -> None:
        """One command on a connection of its own, past every proxy; OSError where it is refused."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        packed = b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words)
        place = urlsplit(self.url)
        try:
            async with asyncio.timeout(10):
                writer.write(f"AUTH {place.username} {place.password}\r\n".encode())
                await reader.readline()
                writer.write(b"*%d\r\n" % len(words) + packed)
                reply = await reader.readline()
        finally:
            writer.close()
            await writer.wait_closed()
        if reply.startswith(b"-"):
            raise OSError(f"{words}: {reply.decode()}")
