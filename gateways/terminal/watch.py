"""Who works for this conversation, by which model, and whether anybody can: looked at now and then."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from typing import Any

from gateways.terminal.screen import Screen
from shared.client import Client
from shared.client.local.typed import runnable
from shared.client.views import models, status
from shared.client.views.status import Working
from shared.client.views.tasks.progress import ConsultProgress, TurnProgress
from shared.errors import BusUnreachable, PromptDockError

_LOOK = 2.0  # seconds between looks at an agent that was asked
_MISSED = 2  # looks in a row that find no Redis, after which that is said


class Watch:
    """Of one conversation, whose turn is `work`."""

    def __init__(self, client: Client, screen: Screen, user: str, session: str, work: TurnProgress) -> None:
        self._client, self._screen, self._user, self._session = client, screen, user, session
        self._work = work
        self.model = ""  # that speaks, by its name
        self.chosen: str | None = None  # for this conversation; None as long as that is not known
        self.away = ""  # why Redis does not answer, where it does not
        self.doing: list[tuple[Working, float]] = []  # tasks that run, and since when
        self._missed = 0  # looks in a row at which it did not
        self._silent: set[str] = set()  # requests whose agent was reported as silent

    async def run(self) -> None:
        """Look how those are who were asked, and who works on tasks of this conversation."""
        while True:
            await self.look()
            for consult in self._work.open:
                with contextlib.suppress(PromptDockError):
                    consult.pulse = await status.pulse(self._client, consult.agent, consult.request_id)
                    self.say_silent(consult)
            await asyncio.sleep(_LOOK)

    async def look(self) -> None:
        """Who is here, and who works on tasks of this conversation; where nobody can be seen, that is said once."""
        try:
            cards = await self._client.presence.here()
            self.model = await self._speaks(cards)
            doing = await status.doing(self._client, cards)
        except BusUnreachable:
            self._missed += 1
            if self._missed < _MISSED:  # it may come back at once
                return
            self.doing = []
            away, self.away = self.away, status.absence(self._client)
            if away != self.away:
                self._screen.note(f"{runnable(self.away)}; what you say is kept until it is back")
            return
        except PromptDockError:
            return
        ours = [one for one in doing if one.activity.session == self._session and one.activity.task]
        self.doing = [(one, time.monotonic() - one.seconds) for one in ours]
        if self.away:
            self._screen.note("the cluster is back")
        self._missed, self.away = 0, ""

    async def _speaks(self, cards: list[dict[str, Any]]) -> str:
        """The model that was chosen for this conversation, else Chatter's; the choice is read once, and then known."""
        if self.chosen is None:
            with contextlib.suppress(PromptDockError):
                self.chosen = await models.here(self._client, self._user, self._session)
        speaks = status.speaks(cards)
        return speaks if speaks in ("", "DEMO") else self.chosen or speaks

    def say_silent(self, consult: ConsultProgress) -> None:
        """Once for each request: an agent that does not say any more that it lives, and what can be done."""
        if consult.open and consult.silent(time.monotonic()) and consult.request_id not in self._silent:
            self._silent.add(consult.request_id)
            name = consult.agent
            self._screen.note(
                f"{name} gives no sign of life: wait, or /stop {name} goes on without it; then ask another"
            )

    def works(self, agent: str) -> str:
        """How the tasks of this conversation are stopped on which an agent works."""
        tasks = [one.activity.task for one, _ in self.doing if one.agent == agent]
        ends = " or ".join(f"promptdock tasks stop {task}" for task in tasks)
        return f"; it works on {', '.join(tasks)}: {runnable(ends)}" if tasks else ""

    def lines(self, width: int, most: int = 2) -> list[str]:
        """The consults that are open, each with how it is ended, and tasks that run; at most so many lines."""
        now = time.monotonic()
        told = [_told(one, now, width) for one in self._work.open]
        told += [f"  {replace(one, seconds=now - since).told(width - 2)}" for one, since in self.doing]
        return told if len(told) <= most else [*told[: most - 1], f"  … and {len(told) - most + 1} more"]


def _told(consult: ConsultProgress, now: float, width: int) -> str:
    end = f" · /stop {consult.agent}"
    return f"  {consult.told(now, max(20, width - len(end) - 3))}{end}"
