"""What a person decides about requests for permission."""

from __future__ import annotations

from typing import get_args

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, Seat, back, fragment, given, local
from shared.bus.messages import PersonDecision
from shared.client.views.conversation.transcript import Permission, permission_of
from shared.client.views.permissions import approvals
from shared.errors import PromptDockError

router = APIRouter()
_SCOPES = ("session", "project", "everywhere")


@router.post("/approvals/{id}")
async def decide(here: Here, id: str) -> Response:
    """Allow once, always or deny. The first answer counts: who comes second is told whose it was."""
    form = await here.request.form()
    decision, scope = given(form, "decision"), given(form, "scope") or "session"
    if decision not in get_args(PersonDecision) or scope not in _SCOPES:
        raise HttpError(422, "that is no answer to a request", "", "allow it once, always, or deny it")
    always, pattern = decision == "always", given(form, "pattern")
    try:
        if always and pattern == (await permission(here, id)).pattern:
            pattern = ""  # what was proposed is this very call, whatever of it is not shown
        made = await approvals.answer(
            here.client,
            id,
            decision,  # type: ignore[arg-type]
            here.person.user_id,
            pattern=(pattern or None) if always else None,
            scope=scope if always else None,  # type: ignore[arg-type]
            reason=given(form, "reason", 500) or None if decision == "deny" else None,
            roles=here.person.roles,
        )
    except PromptDockError as error:
        if here.part:
            raise
        return back(here, local(given(form, "back"), "/inbox"), "bad", error.told())
    told = str(made["told"]) if made["yours"] else f"somebody was first: {made['told']}"
    if here.part:
        return JSONResponse({"told": told, "how": made["how"], "yours": made["yours"]})
    return back(here, local(given(form, "back"), "/inbox"), "", told)


@router.get("/approvals/{id}")
async def card(here: Here, id: str) -> Response:
    """One request as it stands now."""
    return await fragment("permission.html", here, card=await permission(here, id))


async def permission(here: Seat, id: str) -> Permission:
    """A request with what became of it."""
    from dataclasses import replace

    asked = await approvals.find(here.client, id)
    if not here.person.sight.sees(asked.user_id):
        raise HttpError(404, "there is no such request")
    made = permission_of(asked.shown())
    if became := await approvals.became(here.client, asked.id):
        return replace(made, state=became.how, told=became.told())
    return made


async def waiting(here: Seat) -> list[Permission]:
    """The requests that wait for this person, the oldest first; none where the cluster is away."""
    try:
        found = await approvals.mine(here.client, here.person.user_id)
    except PromptDockError:
        return []
    return [permission_of(one.shown()) for one in found]
