"""The turns in a worker's hand, on a real desk."""

from __future__ import annotations

import asyncio
from typing import Any

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.turns.desk import Desk, Ending
from shared.turns.turn import Turn
from shared.worker.hand import Hand
from tests.support.valkey import names, valkey
from tests.turns.ground import claimed, mail

__all__ = ["names", "valkey"]


class _Closing(RedisBus):
    """A bus on which the reply to the end of a turn comes late."""

    def __init__(self, url: str) -> None:
        super().__init__(url, silence=5.0)
        self.ended, self.reply = asyncio.Event(), asyncio.Event()

    async def script(self, script: Any, key: str, *arguments: Any) -> Any:
        told = await super().script(script, key, *arguments)
        if script.name == "finish" and not self.ended.is_set():
            self.ended.set()
            await self.reply.wait()
        return told


class _Runner:
    """Ends its turn, and says afterwards that it came so far."""

    deadline = 0

    def __init__(self, turn: Turn, came: list[str]) -> None:
        self.turn, self.came = turn, came

    async def run(self) -> None:
        await self.turn.finish(Ending())
        await asyncio.sleep(0)
        self.came.append(self.turn.id)

    async def stopped(self) -> None: ...
    async def failed(self, error: Exception, dead: str = "") -> None: ...


async def test_a_turn_comes_to_its_end_though_the_next_of_its_session_was_claimed_already(
    valkey: str, names: Names
) -> None:
    """The claim may be read before the reply to the end: nothing of what follows the end is cut off."""
    bus = _Closing(valkey)
    desk, came = Desk(bus, names, "chatter", lease_ms=60_000), list[str]()
    hand = Hand(desk, lambda turn: _Runner(turn, came), lambda: None)
    try:
        for identity in ("m1", "m2"):
            await desk.post(mail(identity))
        async with asyncio.timeout(10):
            hand.take(await claimed(desk))
            first = next(iter(hand)).task
            await bus.ended.wait()
            hand.take(await claimed(desk))
            second = next(iter(hand)).task
            bus.reply.set()
            await asyncio.gather(first, second)
        assert sorted(came) == ["m1", "m2"]
        assert not len(hand)
    finally:
        await bus.close()
