"""What model calls cost, added up where all workers see it at once; the rows of the Store are the account.

Totals are kept by day, project, task and conversation. A call is named by its turn and number, so that it
counts once however often it is reported.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.bus.base import Bus
from shared.bus.keys import DAY, Names
from shared.worker.budgets import scripts


@dataclass(frozen=True)
class Spent:
    """Dollars that were spent in each scope, and by how much a person raised two of them."""

    day: float = 0.0
    project: float = 0.0
    task: float = 0.0
    session: float = 0.0
    raised_day: float = 0.0
    raised_session: float = 0.0


@dataclass(frozen=True)
class Window:
    """The day's totals by project, as the scheduler weighs them."""

    cost: float
    raised: float
    tokens: dict[str, float]
    calls: dict[str, int]
    projects: dict[str, float]  # dollars of all time


def today(at: float | None = None) -> str:
    """The day in UTC of a moment, by which money is counted."""
    return datetime.fromtimestamp(time.time() if at is None else at, UTC).date().isoformat()


def tomorrow() -> datetime:
    """When the day's budget begins anew."""
    return datetime.fromtimestamp((time.time() // DAY + 1) * DAY, UTC)


class Ledger:
    """The totals of one cluster. Projects and tasks are named by the ids of their rows."""

    def __init__(self, bus: Bus, names: Names) -> None:
        self._bus, self._keys = bus, names.spending()

    async def charge(
        self,
        call: str,
        cost: float,
        tokens: int,
        *,
        at: float | None = None,
        project: str = "",
        task: str = "",
        session: str = "",
    ) -> bool:
        """Count a call; False for one that was counted before."""
        scopes = (project, task, session)
        done = await self._bus.script(
            scripts.CHARGE, self._keys.prefix, call, today(at), f"{cost:.9f}", tokens, *scopes
        )
        return bool(done)

    async def spent(self, project: str = "", task: str = "", session: str = "") -> Spent:
        """What was spent so far."""
        found = await self._bus.script(scripts.SPENT, self._keys.prefix, today(), project, task, session)
        return Spent(*(float(value) for value in found))

    async def window(self) -> Window:
        """The day so far."""
        day = _pairs(await self._bus.command("HGETALL", self._keys.day(today())))
        raised = await self._bus.command("GET", self._keys.raised("day", today()))
        ever = _pairs(await self._bus.command("HGETALL", self._keys.projects))
        parts = {name: value for name, value in day.items() if ":" in name}
        return Window(
            day.get("cost", 0.0),
            float(raised or 0.0),
            {name[7:]: value for name, value in parts.items() if name.startswith("tokens:")},
            {name[6:]: int(value) for name, value in parts.items() if name.startswith("calls:")},
            ever,
        )

    async def allow(self, scope: str, name: str, dollars: float, key: str) -> None:
        """A person raises a budget: of the `day`, or of a `session`; one `key` raises once."""
        await self._bus.script(scripts.ALLOW, self._keys.prefix, f"{scope}:{name}", f"{dollars:.6f}", key)


def _pairs(flat: list[bytes]) -> dict[str, float]:
    pairs = iter(flat)
    return {name.decode(): float(value) for name, value in zip(pairs, pairs, strict=True)}
