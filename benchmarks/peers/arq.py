"""arq: a sorted set as queue; worker and client both poll."""

from __future__ import annotations

import json
from typing import Any

from arq import create_pool, func
from arq.connections import RedisSettings
from arq.worker import Worker

from benchmarks.side import WORDS, Side


def _packed(value: Any) -> bytes:
    return json.dumps(value).encode()


class Arq(Side):
    """A job kept in Redis, and a result that lives for a minute."""

    name, about = "arq", "polls of worker and client each 1 ms (500 by default), JSON, uvloop, hiredis"

    async def serve(self) -> None:
        await Worker(
            [func(reply, name="reply", keep_result=60)],
            redis_settings=RedisSettings.from_dsn(self.url),
            poll_delay=0.001,
            max_jobs=256,
            handle_signals=False,
            job_serializer=_packed,
            job_deserializer=json.loads,
        ).async_run()

    async def open(self) -> None:
        self._pool = await create_pool(
            RedisSettings.from_dsn(self.url), job_serializer=_packed, job_deserializer=json.loads
        )

    async def ask(self) -> None:
        request = next(self._ids)
        job = await self._pool.enqueue_job("reply", {"id": request, "payload": {"question": WORDS}})
        assert job is not None
        assert (await job.result(timeout=30, poll_delay=0.001))["in_reply_to"] == request

    async def send(self, request: str) -> None:
        raise NotImplementedError("its client asks and waits in one")

    async def close(self) -> None:
        await self._pool.aclose()


async def reply(_context: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """The job."""
    return {"in_reply_to": body["id"], "content": WORDS}


side = Arq
