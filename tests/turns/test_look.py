"""Two parts of one turn that wait for different answers, and one wake-up for both."""

from __future__ import annotations

import asyncio

from shared.turns.queue import Queue
from shared.turns.turn import Turn
from tests.turns.ground import claimed, mail


async def test_whoever_is_woken_sees_what_came_though_another_took_it_in(queue: Queue) -> None:
    await queue.post(mail("m1"))
    turn = Turn(queue, await claimed(queue))

    async def waits() -> list[str]:
        await turn.wake_up.wait()
        await turn.look()
        return [entry.id for entry in turn.given]

    both = [asyncio.create_task(waits()) for _ in range(2)]
    await asyncio.sleep(0)
    await queue.post(mail("m2", place="join"))
    turn.wake_up.set()
    async with asyncio.timeout(10):
        assert await asyncio.gather(*both) == [["m1", "m2"]] * 2
