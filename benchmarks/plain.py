"""Plain PUBLISH and answer, as one writes it with redis-py: pooled client, pub/sub, task per message."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis

from benchmarks.side import Side, answer, question


class Plain(Side):
    """Kept nowhere: what nobody hears is lost."""

    name, about = "plain", "PUBLISH and answer on redis-py's pooled client; kept nowhere"

    async def serve(self) -> None:
        client = self._client()
        tasks: set[asyncio.Task[Any]] = set()

        def take(data: bytes) -> None:
            reply = answer(json.loads(data)["id"])
            task = asyncio.ensure_future(client.publish("plain-output", reply))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        await _listen(client, "plain-input", take)

    async def open(self) -> None:
        self._redis = self._client()
        self._task = asyncio.create_task(_listen(self._redis, "plain-output", self.heard))

    async def send(self, request: str) -> None:
        await self._redis.publish("plain-input", question(request))

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._redis.aclose(close_connection_pool=True)

    def _client(self) -> Redis:
        return Redis(connection_pool=BlockingConnectionPool.from_url(self.url, timeout=None))


async def _listen(client: Redis, channel: str, take: Callable[[bytes], None]) -> None:
    async with client.pubsub() as pubsub:
        await pubsub.subscribe(channel)
        async for message in pubsub.listen():
            if message["type"] == "message":
                take(message["data"])
