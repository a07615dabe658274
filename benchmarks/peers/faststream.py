"""FastStream on Redis: pub/sub channels, answers by `reply_to` to one channel that the asker listens on.

That is its quickest way: its own `broker.request` subscribes and unsubscribes anew for each question.
"""

from __future__ import annotations

import asyncio
from typing import Any

from faststream.redis import RedisBroker

from benchmarks.side import WORDS, Side


class FastStream(Side):
    """Nothing is kept: pub/sub, without acknowledgement."""

    name, about = "faststream", "Redis pub/sub, reply_to one channel, uvloop, hiredis; kept nowhere"

    def _broker(self) -> Any:
        return RedisBroker(self.url, logger=None, max_connections=1000)

    async def serve(self) -> None:
        broker = self._broker()

        async def reply(body: dict[str, Any]) -> dict[str, Any]:
            return {"in_reply_to": body["id"], "content": WORDS}

        broker.subscriber("faststream-input")(reply)
        await broker.start()
        await asyncio.Event().wait()

    async def open(self) -> None:
        self._open = self._broker()
        self._open.subscriber("faststream-output")(self._take)
        await self._open.start()

    async def _take(self, body: dict[str, Any]) -> None:
        self.answered(body["in_reply_to"])

    async def send(self, request: str) -> None:
        question = {"id": request, "payload": {"question": WORDS}}
        await self._open.publish(question, "faststream-input", reply_to="faststream-output")

    async def close(self) -> None:
        await self._open.stop()


side = FastStream
