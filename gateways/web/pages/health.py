"""What the cluster stands on and whether it is well: Redis, the Store, queues, what could not be answered, logs."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import TABS, Here, back, given, known, view
from shared.client.local import logs
from shared.client.views import dead_letters, pending, status
from shared.errors import PromptDockError

router = APIRouter()
_LINES = 60
_LETTERS = 50


@router.get("/health")
async def health(here: Here) -> Response:
    """The whole of it; of what cannot be reached it is said."""
    state, rows, letters, lines, store = await asyncio.gather(
        known(status.status(here.client), dict[str, Any]()),
        known(pending.pending(here.client, 200), list[pending.PendingRow]()),
        known(dead_letters.letters(here.client, _LETTERS), list[dead_letters.Dead]()),
        known(logs.last(here.client, logs.Wanted(count=_LINES, level="warning")), list[logs.LogLine]()),
        status.unreadable(here.client),
    )
    owner = here.person.owner
    return await view(
        *(here, "health", "health.html"),
        state=state,
        away="" if state else status.absence(here.client),
        store=store,
        pending=rows if owner else [],
        letters=[one.card() for one in letters[:_LETTERS]] if owner else [],
        lines=lines if owner else [],
        kept=here.client.kept,
    )


@router.post("/dead")
async def letter(here: Here) -> Response:
    """Post a dead letter again, or throw it away."""
    if not here.person.owner:
        raise HttpError(403, "only the owner does that")
    form = await here.request.form()
    name, act = given(form, "key", 300), given(form, "act", 20)
    try:
        if act == "replay":
            await dead_letters.replay(here.client, name)
        elif act == "drop":
            await dead_letters.drop(here.client, name)
        else:
            raise HttpError(422, "there is nothing of that name to do with a letter")
    except PromptDockError as error:
        return back(here, "/health", "bad", error.told())
    return back(here, "/health", "", "Posted again." if act == "replay" else "Thrown away.")


@router.get("/more")
async def more(here: Here) -> Response:
    """All views, for a narrow screen."""
    return await view(here, "more", "more.html", views=TABS)
