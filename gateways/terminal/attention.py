"""What waits for this person, in whichever conversation: said as a chat opens, and counted as things happen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection

from gateways.terminal.screen import Screen
from shared.client import Client
from shared.client.local.typed import runnable
from shared.client.views import inbox
from shared.errors import PromptDockError

_GREETED = 5  # lines about what waits, when a chat opens
_COUNTED = 30.0  # seconds between looks at what waits, where nothing is heard
_GATHERED = 0.5  # seconds for which changes are gathered
_SETTLED = 1.5  # seconds in which what a person decided has its effect


class Attention:
    """`put` names what stands in this chat already: requests and a question, by their ids."""

    def __init__(self, client: Client, screen: Screen, user: str, put: Callable[[], Collection[str]]) -> None:
        self._client, self._screen, self._user, self._put = client, screen, user, put
        self.waiting: list[inbox.Item] = []
        self.stale = asyncio.Event()  # what waits may have changed

    @property
    def elsewhere(self) -> list[inbox.Item]:
        """What waits for this person and does not stand in this chat already."""
        put = self._put()
        return [item for item in self.waiting if not any(name.startswith(item.id) for name in put)]

    async def count(self) -> None:
        """Look what waits for this person, as far as it can be known now."""
        self.waiting = await inbox.known(self._client, self._user)

    async def greet(self) -> None:
        """What waits for this person, wherever it came from, but what was put just now; one line each."""
        await self.count()
        for told in inbox.lines(self.elsewhere, _GREETED):
            self._screen.note(runnable(told))

    async def run(self) -> None:
        """Say once what waits, beside the chat, and count it again when something happened that may change it."""
        await self.greet()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_COUNTED):
                    await self.stale.wait()
            self.stale.clear()
            await asyncio.sleep(_GATHERED)  # much happens at once
            await self.count()

    async def hear(self) -> None:
        """Notice what may change it."""
        loop = asyncio.get_running_loop()

        def changed() -> None:
            self.stale.set()
            loop.call_later(_SETTLED, self.stale.set)  # what was said now is settled a moment later

        with contextlib.suppress(PromptDockError):  # it is counted now and then, too
            await inbox.changes(self._client, changed)
