"""Inside a turn: wait for what somebody else gives."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.errors import BusUnreachable
from shared.turns.turn import Turn

T = TypeVar("T")
EVERY = 2.0  # seconds after which it is looked for without a wake-up: one can be missed


async def wait_for(
    turn: Turn, check: Callable[[], Awaitable[T | None]], until: float, every: float = EVERY
) -> T | None:
    """What `check` finds, sooner or later; None at `until`, a moment of the monotonic clock. Fenced where the lease
    was lost.

    While Redis is away it goes on, also beyond that: what is awaited is kept, there or with who sends it.
    """
    while True:
        try:
            if (found := await check()) is not None:
                return found
            left = until - time.monotonic()
            if left <= 0:
                return None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(every, left)):
                    await turn.wake_up.wait()
            await turn.look()
        except BusUnreachable:
            await asyncio.sleep(EVERY / 2)
            turn.wake_up.set()  # what it was for may not have been taken in
