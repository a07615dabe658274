"""Whether a provider says anything: where it does not for a while, that is told, once in each silence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Silence:
    """Calls `tell` when nothing was heard for `seconds`; a context, outside of which nothing is told."""

    def __init__(self, seconds: float, tell: Callable[[], None]) -> None:
        self._seconds, self._tell = seconds, tell
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Silence:
        self.heard()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def heard(self) -> None:
        """Something came."""
        loop = asyncio.get_running_loop()
        self._last = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        left = self._last + self._seconds - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._look)
            return
        self._timer = None  # set again by what is heard next
        self._tell()
