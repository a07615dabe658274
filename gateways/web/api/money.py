"""Models, and what they may cost and did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Body
from gateways.web.calls import call
from shared.client.local import key as keys
from shared.client.types import Card
from shared.client.views import budgets as views
from shared.client.views import models as model_views
from shared.client.views import visible

router = APIRouter(prefix="/api", tags=["models and budgets"])


class DayBudget(Body):
    """What may be spent in a day; null takes the bound away."""

    dollars: Annotated[float, Field(ge=0, le=1_000_000)] | None


@router.get("/models")
async def models(client: Line, _visitor: Visitor, refresh: bool = False) -> dict[str, Any]:
    """Which models the settings choose, and those that each provider has; none without a key or an address."""
    settings = client.settings
    if not keys.is_set(settings):  # nothing is asked, and the scripted one answers
        return {"chosen": {}, "models": ["demo"], "providers": [], "demo": True}
    found = await model_views.listings(settings, refresh)
    providers = [
        {
            "name": one.provider,
            "state": one.state,
            "key": one.key,
            "why": one.why,
            "models": list(one.models),
        }
        for one in found
    ]
    names = model_views.names(found)
    return {"chosen": model_views.chosen(settings, found), "models": names, "providers": providers}


@router.get("/budgets")
async def budgets(client: Line, visitor: Visitor) -> dict[str, list[Card]]:
    """What may be spent, and what was."""
    visible.owner(visitor.sight, "what is spent")
    return {"budgets": await views.budgets(client)}


@router.put("/budgets/day")
async def day(asked: DayBudget, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Another bound for each day."""
    visible.owner(visitor.sight, "what may be spent")
    return await call(client, visitor, "set_day_budget", {"dollars": asked.dollars})


@router.get("/spend")
async def spend(
    client: Line,
    visitor: Visitor,
    by: Literal["agent", "model", "task", "project", "day"] = "day",
    days: Annotated[int, Query(ge=1, le=366)] = 7,
    project: Annotated[str | None, Query(max_length=200)] = None,
) -> dict[str, Any]:
    """What model calls used, by day or by who and what used it."""
    visible.owner(visitor.sight, "what is spent")
    rows = await views.spent(client, by, datetime.now(UTC) - timedelta(days=days), project)
    return {"by": by, "rows": rows, "total": views.total(rows)}
