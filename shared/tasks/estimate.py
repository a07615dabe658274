"""What a task is expected to need, from what earlier ones did: told before it begins, and held against budgets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from shared.store.base import Store
from shared.store.records import TaskResult
from shared.tasks import graph

ENOUGH = 3  # tasks of one kind, before their like is believed
_PAST = 300  # results that estimates rest on


@dataclass(frozen=True)
class PastTask:
    """What one task of before needed."""

    project: UUID
    agent: str
    cost: float
    tokens: float


@dataclass(frozen=True)
class Estimate:
    """The median of what `of` tasks needed; nothing is expected where there were none."""

    cost: float = 0.0
    tokens: float = 0.0
    of: int = 0

    def as_dict(self) -> dict[str, float]:
        """As tools and messages tell it."""
        return {"cost": round(self.cost, 4), "tokens": round(self.tokens), "from_tasks": self.of}


async def recall(store: Store) -> list[PastTask]:
    """What the newest tasks needed, as their results say."""
    results = await store.select(TaskResult, order=[("created_at", "desc")], limit=_PAST)
    known = {row.id: row for row in await graph.tasks(store, {row.task_id for row in results})}
    return [
        PastTask(known[row.task_id].project_id, row.agent, row.cost, row.tokens_used)
        for row in results
        if row.task_id in known
    ]


def estimate(past: Iterable[PastTask], project: UUID, agent: str) -> Estimate:
    """By the tasks of this project and agent; where they are too few, of the project, of the agent, of all."""
    rows = [row for row in past if row.tokens > 0 or row.cost > 0]
    of_project = [row for row in rows if row.project == project]
    of_agent = [row for row in rows if row.agent == agent]
    both = [row for row in of_project if row.agent == agent]
    for fitting in (both, of_project, of_agent):
        if len(fitting) >= ENOUGH:
            return _middle(fitting)
    return _middle(rows)


def _middle(rows: list[PastTask]) -> Estimate:
    if not rows:
        return Estimate()
    from statistics import median

    return Estimate(median(row.cost for row in rows), median(row.tokens for row in rows), len(rows))
