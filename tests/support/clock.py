"""Clocks for tests that a busy machine makes late: one of its own, in which nobody waits, and one for bounds."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ParamSpec

P = ParamSpec("P")
_TICK = 0.01  # seconds
_USUAL = 0.005  # so late is a timer of a machine that has time


class OwnClock(asyncio.SelectorEventLoop):
    """A loop whose time stands still while anything can run, and else goes on to the next moment that is waited for.

    Only for what waits by the loop alone: what a thread, a socket or a process does takes no time here.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        waiting: Any = self
        moments = [timer.when() for timer in waiting._scheduled if not timer.cancelled()]
        if not waiting._ready and moments:
            self._now = max(self._now, min(moments))
        super()._run_once()  # type: ignore[misc]


def own_clock(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """The test, run by a clock of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=OwnClock) as runner:
            runner.run(test(*args, **kwargs))

    return run


@asynccontextmanager
async def stopwatch() -> AsyncIterator[Callable[[], float]]:
    """`passed()`: the seconds since the beginning in which this loop could have run."""
    began, late = time.monotonic(), 0.0

    async def tick() -> None:
        nonlocal late
        while True:
            due = time.monotonic() + _TICK
            await asyncio.sleep(_TICK)
            over = time.monotonic() - due
            late += over if over > _USUAL else 0.0

    ticking = asyncio.create_task(tick())
    try:
        yield lambda: time.monotonic() - began - late
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
