"""The requests for permission of one conversation: put once, answered by number or id, and what became of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection
from typing import Literal

from gateways.terminal.screen import Screen
from shared.bus.messages import Output
from shared.client import Client
from shared.client.views.permissions import approvals
from shared.errors import PromptDockError

_QUOTED = 60  # characters of what would be done
_TOLD = {"allow_once": "allowed once", "always": "always allowed", "deny": "denied"}
Decision = Literal["allow_once", "always", "deny"]


class Requests:
    """`changed` is called when one was put or answered."""

    def __init__(
        self, client: Client, screen: Screen, user: str, session: str, changed: Callable[[], None]
    ) -> None:
        self._client, self._screen, self._user, self._session = client, screen, user, session
        self._changed = changed
        self.open: dict[str, Output] = {}  # approval id -> the request
        self._decided: dict[str, float] = {}  # turn -> when its request was answered here

    def put(self, output: Output) -> None:
        """Show a request, once."""
        name = approvals.request_id(output)
        if name not in self.open:
            self.open[name] = output
            self._screen.answer(output)
        self._changed()

    async def recall(self) -> None:
        """Put again what waits for this person's permission: it may have been asked while nobody was here."""
        with contextlib.suppress(PromptDockError):
            for output in await approvals.waiting(self._client, self._session, self._user):
                self.put(output)

    async def decide(self, decision: Decision, reason: str = "", id: str = "") -> None:
        """Answer the one request that was put, or the one whose id begins so."""
        if not self.open:
            await self.recall()
            if not self.open:
                self._screen.note("nobody waits for a permission in this conversation")
            return  # what was put only now was not read yet
        fitting = [name for name in self.open if name.startswith(id)]
        if len(fitting) != 1:
            shown = ", ".join(name[: approvals.SHORT] for name in fitting or self.open)
            self._screen.note(f"name the request: 1, 2 or 3 and its id ({shown})")
            return
        approval_id, asked = fitting[0], self.open.pop(fitting[0])
        try:
            sent = await self._client.decide(
                approval_id, decision, self._user, self._session, reason=reason or None
            )
        except PromptDockError as error:
            self.open[approval_id] = asked
            self._screen.error(str(error))
            return
        if asked.in_reply_to:
            self._decided[asked.in_reply_to] = time.monotonic()
        told = _TOLD[decision]
        self._screen.note(f"{told}, when Redis is back" if sent.outcome == "kept" else told)
        self._changed()

    def decided(self, turns: Collection[str]) -> dict[str, float]:
        """When the requests of these turns, which have ended, were answered here; they are forgotten."""
        return {turn: self._decided.pop(turn) for turn in turns if turn in self._decided}

    def of(self, turns: Collection[str]) -> list[tuple[str, Output]]:
        """Those that these turns wait for."""
        return [(name, asked) for name, asked in self.open.items() if asked.in_reply_to in turns]

    async def ended(self, turns: Collection[str]) -> None:
        """What became of the requests of turns that have ended, where that was not decided here."""
        for name, asked in self.of(turns):
            self.open.pop(name, None)
            became = None
            with contextlib.suppress(PromptDockError):
                became = await approvals.became(self._client, name)
            told = became.told(self._user) if became else "withdrawn, because its turn ended"
            done = "" if became and became.allows else "; it was not done"
            self._screen.note(f"{approvals.does(asked, _QUOTED)}: {told}{done}")
