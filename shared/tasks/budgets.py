"""What a day may cost as a person set it while the cluster runs; it goes before the setting `BUDGET_DAY`."""

from __future__ import annotations

from shared.store.base import Store
from shared.store.records import Setting

SCOPE, DAY = "budget", "day"
# How the words begin with which a task says that it waits for money which others spend too.
_SHARED = ("the budget for today", "the budget of the project")


async def day(store: Store, configured: float | None) -> float | None:
    """Dollars that a day may cost; None is without a bound."""
    found = await store.select(Setting, {"scope": SCOPE, "key": DAY}, limit=1)
    dollars = found[0].value.get("dollars") if found else None
    return configured if dollars is None else float(dollars)


def waits_for_money(question: str) -> bool:
    """Whether a paused task may go on as soon as its project or the day has money again."""
    return question.startswith(_SHARED)
