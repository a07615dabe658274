"""How `ask` waits: what two streams bring in its order, and how long an answer is awaited."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from gateways.cli import screen
from shared.client import Client
from shared.client.feed import newest
from shared.errors import PromptDockError

SETTLE = 0.5  # seconds that the last events may come behind the answer
_PATIENCE = 900.0  # seconds in which an answer is awaited where nobody says otherwise
_UNATTENDED = 60.0  # seconds in which a permission is awaited where nobody sits who could give it


class Order:
    """What two streams bring, in the order in which it was said: `waits` until the outputs until now are shown."""

    def __init__(self) -> None:
        self._shown = (0, 0)
        self._more = asyncio.Event()
        self._lines: set[asyncio.Task[None]] = set()

    def shown(self, cursor: str) -> None:
        """The outputs up to this one are on the screen, or are not for it."""
        self._shown = max(self._shown, _place(cursor))
        self._more.set()

    async def _until(self, cursor: str) -> None:
        while self._shown < _place(cursor):
            self._more.clear()
            await self._more.wait()

    def tell(self, client: Client, text: str) -> None:
        """A line that came by an event, behind the outputs that were said before it."""

        async def in_turn() -> None:
            with contextlib.suppress(PromptDockError, TimeoutError):
                async with asyncio.timeout(SETTLE):
                    await self._until(await newest(client))
            screen.talk(text)

        self._lines.add(task := asyncio.create_task(in_turn()))
        task.add_done_callback(self._lines.discard)

    async def end(self) -> None:
        """All lines are told."""
        await asyncio.gather(*self._lines)


def _place(cursor: str) -> tuple[int, int]:
    ms, _, number = cursor.partition("-")
    return int(ms), int(number or 0)


class Limit:
    """How long an answer is awaited: a permission that nobody here can give, not as long as work that is done."""

    def __init__(self, seconds: float | None, attended: bool) -> None:
        self.seconds = _PATIENCE if seconds is None else seconds
        self._fixed = attended or seconds is not None
        self._timeout = asyncio.timeout(self.seconds)
        self._end: float | None = None

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._end = self._timeout.when()

    async def __aexit__(self, *error: Any) -> None:
        self._fixed = True
        await self._timeout.__aexit__(*error)

    def asked(self) -> None:
        """From now on a permission is waited for."""
        self._change(_UNATTENDED)

    def goes_on(self) -> None:
        """Work is done again."""
        self._change(_PATIENCE)

    def _change(self, seconds: float) -> None:
        if not self._fixed and self._end is not None and self.seconds != seconds:
            self.seconds = seconds
            until = asyncio.get_running_loop().time() + seconds
            self._timeout.reschedule(min(self._end, until))
