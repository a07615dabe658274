"""A clock of its own for a test: whoever waits there waits no real time, and a busy machine makes nothing late."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


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
