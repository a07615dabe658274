"""One way to ask and be answered over Redis: a client here, and a replica in a process of its own.

All sides carry the same body of about 300 bytes, parse it as JSON where it arrives, and run on uvloop.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from abc import ABC, abstractmethod

WORDS = "x" * 200
PATIENCE = 20.0  # seconds after which an answer counts as lost, which no side may do


def question(request: str, via: str = "") -> bytes:
    """The body of a question."""
    told = {"id": request, "from": "asker", "to": "bench", "type": "question", "payload": {"question": WORDS}}
    return json.dumps({**told, "via": via} if via else told).encode()


def answer(request: str, via: str = "") -> str:
    """The body of an answer."""
    told = {"id": f"{request}.end", "in_reply_to": request, "status": "complete", "content": WORDS}
    return json.dumps({**told, "via": via} if via else told)


class Side(ABC):
    """What is compared. `channel` names are this side's own, so that all sides may share one server."""

    name: str = ""
    about: str = ""

    def __init__(self, url: str) -> None:
        self.url = url
        self._ids = (f"{secrets.token_hex(4)}{number:08d}" for number in itertools.count())
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def ask(self) -> None:
        """One whole round trip."""
        request = next(self._ids)
        future = self._waiting[request] = asyncio.get_running_loop().create_future()
        await self.send(request)
        await future

    def heard(self, data: bytes) -> None:
        """An answer came."""
        self.answered(json.loads(data)["in_reply_to"])

    def answered(self, request: str) -> None:
        """The answer to this request came."""
        future = self._waiting.pop(request, None)
        if future is not None and not future.done():
            future.set_result(None)

    @abstractmethod
    async def serve(self) -> None:
        """The replica: answer until cancelled."""

    @abstractmethod
    async def open(self) -> None:
        """Connect the client."""

    @abstractmethod
    async def send(self, request: str) -> None:
        """Put one question on its way."""

    async def begin(self) -> None:  # noqa: B027 - most sides need nothing between the rounds
        """Before a round."""

    async def end(self) -> None:  # noqa: B027 - most sides need nothing between the rounds
        """After a round."""

    @abstractmethod
    async def close(self) -> None:
        """Give back connections."""
