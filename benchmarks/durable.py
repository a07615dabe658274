"""The durable turn through `Queue` and `Intake`: what a message, and what a consult, costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

from benchmarks.side import Side, answer, question
from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.turns.handoff import Handoff
from shared.turns.intake import Intake
from shared.turns.queue import Claim, Completion, Mail, Queue

ROOM = 512  # turns side by side
_LIMIT = 100_000


class Message(Side):
    """Accepted, claimed, answered and closed in one script; each request is a session of its own."""

    name, about = "message", "posted, claimed, answered and finished; kept at each step"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.names = Names(f"bench-{self.name}")
        self.bus = RedisBus(url)
        self.queue = Queue(self.bus, self.names, "bench", limit=_LIMIT)
        self._input, self._output = self.names.agent("bench"), self.names.channel("chatter-output")
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: set[asyncio.Task[None]] = set()  # those that carry a turn

    async def serve(self) -> None:
        wake, loop = asyncio.Event(), asyncio.get_running_loop()

        def heard(_channel: str, content: dict[str, Any] | None) -> None:
            if content is None or content.get("id") != handoff.last_id:
                wake.set()

        handoff = Handoff(self.queue, "bench", lambda: len(self._held) == 1, self._take)
        intake = Intake(self.queue, [self._input], heard, plain=[self._input], handoff=handoff)
        self._spawn(intake.run())
        await intake.ready.wait()
        while True:
            wake.clear()
            claims, due = await self.queue.claims("bench", ROOM)
            for claim in claims:
                self._take(claim)
            timer = loop.call_later(1.0 if due else 0.0, wake.set)
            await wake.wait()
            timer.cancel()

    def _take(self, claim: Claim) -> None:
        task = self._spawn(self.carry(claim))
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    async def carry(self, claim: Claim) -> None:
        """A turn that is answered at once."""
        request = json.loads(claim.entries[0].data)["id"]
        ending = Completion(channel=self._output, output=answer(request, self._output))
        await self.queue.finish(claim.session, claim.epoch, ending)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def open(self) -> None:
        await self._listen(self._output)

    async def _listen(self, channel: str) -> None:
        ready = asyncio.Event()

        async def on_ready() -> None:
            ready.set()

        listener = self.bus.listener([channel], lambda _channel, data: self.heard(data), on_ready, channel)
        self._spawn(listener.run())
        await ready.wait()

    async def send(self, request: str) -> None:
        data = question(request, self._input)
        receipt = await self.queue.post(Mail(request, request, self._input, data))
        assert receipt.outcome == "accepted", receipt

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.bus.close()


class Consult(Message):
    """Between two agents: the asker's turn notes the call; the answer is journalled, then delivered to it."""

    name, about = "consult", "noted by the asker, posted, claimed, answer journalled and delivered; finished"

    async def open(self) -> None:
        self.asker = Queue(self.bus, self.names, "asker", limit=_LIMIT)
        await self._listen(self.names.agent("asker"))

    async def begin(self) -> None:
        """A turn of the asker, in which it consults."""
        opening = next(self._ids)
        await self.asker.post(Mail(opening, opening, "asked", question(opening)))
        (self._turn,), _ = await self.asker.claims("asker", 1)

    async def end(self) -> None:
        await self.asker.finish(self._turn.session, self._turn.epoch, Completion())

    async def send(self, request: str) -> None:
        await self.asker.step(self._turn.session, self._turn.epoch, 0, -1, [], calls=[request])
        await super().send(request)

    async def carry(self, claim: Claim) -> None:
        request = json.loads(claim.entries[0].data)["id"]
        channel = self.names.agent("asker")
        data = answer(request, channel).encode()
        await self.queue.step(claim.session, claim.epoch, 0, -1, [data])
        asker = Queue(self.bus, self.names, "asker")
        assert await asker.respond(request, channel, data) == "delivered"
        await self.queue.finish(claim.session, claim.epoch, Completion())
