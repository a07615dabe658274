"""What was spent, over days and by whom, and what may be."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, back, called, given, view
from shared.client.views import budgets
from shared.errors import PromptDockError

router = APIRouter()
_DAYS = 30
_BY = ("agent", "model", "project", "task")


@router.get("/budgets")
async def spent(here: Here, by: str = "agent") -> Response:
    """Thirty days, and today's limits."""
    by = by if by in _BY else "agent"
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since = today - timedelta(days=_DAYS - 1)
    days, limits, parts = await asyncio.gather(
        budgets.spent(here.client, "day", since),
        budgets.budgets(here.client),
        budgets.spent(here.client, by, since),
    )
    found = {str(card["name"]): card for card in days}
    dates = [(since + timedelta(days=n)).date().isoformat() for n in range(_DAYS)]
    cost = [float(found[date]["cost"]) if date in found else 0.0 for date in dates]
    tokens = [int(found[date]["input"] + found[date]["output"]) if date in found else 0 for date in dates]
    money = any(cost)
    top = max([*(cost if money else tokens), 1e-9])
    bars = [
        (date, amount, used, round((amount if money else used) / top * 100, 1))
        for date, amount, used in zip(dates, cost, tokens, strict=True)
    ]
    return await view(
        *(here, "budgets", "budgets.html"),
        bars=bars,
        money=money,
        limits=limits,
        parts=parts,
        total=budgets.total(days),
        by=by,
        ways=_BY,
    )


@router.post("/budgets")
async def change(here: Here) -> Response:
    """What a day, a project or a task may cost; nothing given takes the limit off."""
    form = await here.request.form()
    scope, name, typed = given(form, "scope", 20), given(form, "name", 200), given(form, "dollars", 30)
    try:
        amount = float(typed.removeprefix("$")) if typed else None
    except ValueError:
        return back(here, "/budgets", "bad", f"{typed!r} is no amount of dollars.")
    calls: dict[str, tuple[str, dict[str, object]]] = {
        "day": ("set_day_budget", {"dollars": amount}),
        "project": ("edit_project", {"project_id": name, "budget_limit": amount}),
        "task": ("edit_task", {"task_id": name, "budget": amount}),
    }
    if scope not in calls:
        raise HttpError(422, "there is no such budget")
    try:
        await called(here, *calls[scope])
    except PromptDockError as error:
        return back(here, "/budgets", "bad", error.told())
    return back(here, "/budgets", "", "Kept.")
