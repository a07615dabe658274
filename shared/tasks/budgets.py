"""What a day may cost as a person set it while the cluster runs, before the setting `BUDGET_DAY`, and what is asked of
a person where a budget is spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared import plain
from shared.store.base import Store
from shared.store.records import Setting

SCOPE, DAY = "budget", "day"
ASKED = "budget"  # under it a session keeps what its person is asked
OPTIONS = ["raise", "split", "stop"]
# How the words begin with which a task says that it waits for money which others spend too.
_SHARED = ("the budget for today", "the budget of the project")


async def day(store: Store, configured: float | None) -> float | None:
    """Dollars that a day may cost; None is without a bound."""
    rows = await store.select(Setting, {"scope": SCOPE, "key": DAY}, limit=1)
    dollars = rows[0].value.get("dollars") if rows else None
    return configured if dollars is None else float(dollars)


def waits_for_money(question: str) -> bool:
    """Whether a paused task may go on as soon as its project or the day has money again."""
    return question.startswith(_SHARED)


def question(budget: Mapping[str, Any]) -> str:
    """What the person is asked; `scope`, `name` and `dollars` are the budget."""
    of = {"day": "for today", "session": "of this conversation", "turn": "of one turn"}
    name = of.get(str(budget.get("scope")), f"of the {budget.get('scope')} {budget.get('name')}")
    return (
        f"The budget {name} ({plain.dollars(float(budget.get('dollars') or 0))}) is spent. "
        "Answer raise (by the same amount again), split (into smaller pieces), or stop."
    )
