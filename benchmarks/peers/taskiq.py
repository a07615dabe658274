"""taskiq: stream broker with acknowledgement, results in Redis, for which its client has to poll."""

from __future__ import annotations

import asyncio
from typing import Any

from taskiq.api import run_receiver_task
from taskiq.serializers import ORJSONSerializer
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

from benchmarks.side import WORDS, Side


class Taskiq(Side):
    """A stream with a consumer group, and a result that lives for a minute."""

    name, about = "taskiq", "Redis stream, results in Redis polled each 1 ms, orjson, uvloop, hiredis"

    def _broker(self) -> Any:
        results: Any = RedisAsyncResultBackend(self.url, result_ex_time=60)
        broker = RedisStreamBroker(self.url).with_result_backend(results).with_serializer(ORJSONSerializer())
        self._task = broker.register_task(_reply, task_name="reply")
        return broker

    async def serve(self) -> None:
        broker = self._broker()
        await run_receiver_task(broker, max_async_tasks=256, max_prefetch=256, run_startup=True)

    async def open(self) -> None:
        self._open = self._broker()
        await self._open.startup()

    async def ask(self) -> None:
        request = next(self._ids)
        task = await self._task.kiq({"id": request, "payload": {"question": WORDS}})
        result = await task.wait_result(check_interval=0.001, timeout=30)
        assert result.return_value["in_reply_to"] == request, result

    async def send(self, request: str) -> None:
        raise NotImplementedError("its client asks and waits in one")

    async def close(self) -> None:
        await self._open.shutdown()


async def _reply(body: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"in_reply_to": body["id"], "content": WORDS}


side = Taskiq
