"""The time that a task may take. While a person is asked it stands still."""

from __future__ import annotations

import asyncio
from types import TracebackType


class WorkClock:
    """Ends what runs inside of `async with` by a TimeoutError."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(max(1.0, seconds))
        self._left = 0.0  # seconds, while it stands still

    async def __aenter__(self) -> WorkClock:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, where)

    def stand_still(self, waits: bool) -> None:
        """Stop it as long as a person is waited for, and let it go on then."""
        now = asyncio.get_running_loop().time()
        if waits:
            self._left = (self._timeout.when() or now) - now
            self._timeout.reschedule(None)
        else:
            self._timeout.reschedule(now + self._left)
