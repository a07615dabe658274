"""Celery: Redis as broker and as result backend, whose answers come by pub/sub.

Its client is not asyncio's: one thread keeps the requests in flight and drains the results as they come,
which is quicker than a thread for each request.
"""

from __future__ import annotations

import time
from typing import Any

from celery import Celery

from benchmarks.race import Lap, summed
from benchmarks.side import WORDS, Side


class CelerySide(Side):
    """A list as queue, acknowledged early; a result that lives for a minute."""

    name, about = (
        "celery",
        "Redis broker and results, two threads (quicker here than prefork or solo), prefetch 256, hiredis",
    )

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._app = Celery("bench", broker=url, backend=url, set_as_current=False)
        self._app.conf.update(
            worker_prefetch_multiplier=256,
            result_expires=60,
            broker_connection_retry_on_startup=True,
            worker_hijack_root_logger=False,
        )
        self._reply = self._app.task(_reply, name="reply")

    def work(self) -> None:
        """Answer until ended."""
        options = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        self._app.worker_main(
            ["worker", "--pool", "threads", "--concurrency", "2", "--loglevel", "ERROR", *options]
        )

    async def serve(self) -> None:
        raise NotImplementedError("its worker has a loop of its own: work")

    async def open(self) -> None:
        self._drained = self._app.backend.result_consumer

    async def ask(self) -> None:
        done: list[Any] = []
        self._begin(done)
        ends = time.monotonic() + 0.5
        while not done:
            if time.monotonic() > ends:
                raise TimeoutError
            self._drain()

    async def lap(self, in_flight: int, seconds: float) -> Lap:
        """As race.lap does it."""
        done: list[float] = []
        took: list[float] = []
        started = time.perf_counter()
        for _ in range(in_flight):
            self._begin(done)
        under_way = in_flight
        while under_way:
            self._drain()
            took += done
            under_way -= len(done)
            again = len(done) if time.perf_counter() - started < seconds else 0
            done.clear()
            for _ in range(again):
                self._begin(done)
            under_way += again
        return summed(took, time.perf_counter() - started)

    def _begin(self, done: list[Any]) -> None:
        started = time.perf_counter()
        request = next(self._ids)

        def came(result: Any) -> None:
            assert result.result["in_reply_to"] == request, result.result
            done.append((time.perf_counter() - started) * 1e6)

        self._reply.apply_async(({"id": request, "payload": {"question": WORDS}},)).then(came)

    def _drain(self) -> None:
        self._drained.drain_events(timeout=0.2)

    async def send(self, request: str) -> None:
        raise NotImplementedError("its client asks and waits in one")

    async def close(self) -> None:
        self._app.close()


def _reply(body: dict[str, Any]) -> dict[str, Any]:
    return {"in_reply_to": body["id"], "content": WORDS}


side = CelerySide
