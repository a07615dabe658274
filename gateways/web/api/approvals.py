"""Requests for permission, what was allowed for good, and all else that waits for a person."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from gateways.web.access import Line, Person, Visitor
from gateways.web.api.fields import Body, Limit, Long, Name, NamePart
from gateways.web.calls import call
from shared.client.types import Card
from shared.client.views import inbox as waiting
from shared.client.views import visible
from shared.client.views.permissions import approvals as views
from shared.settings import Settings

router = APIRouter(prefix="/api", tags=["approvals"])


class ApprovalAnswer(Body):
    """The answer to a request. `pattern` and `scope` say how far an `always` goes."""

    decision: Literal["allow_once", "always", "deny"]
    pattern: NamePart | None = None
    scope: Literal["session", "project", "everywhere"] | None = None
    reason: Long | None = None


def _may_see(person: Person, card: Card, settings: Settings) -> bool:
    roles = settings.approver_roles & set(person.roles)
    return person.sight.sees(card["user_id"]) or bool(roles)


@router.get("/inbox")
async def inbox(client: Line, visitor: Visitor) -> dict[str, list[Card]]:
    """All that waits for this person, over all conversations."""
    return {"items": [item.card() for item in await waiting.inbox(client, visitor.user_id)]}


@router.get("/approvals")
async def listing(
    client: Line, visitor: Visitor, all: bool = False, limit: Limit = 200
) -> dict[str, list[Card]]:
    """The open requests, the oldest first; with `all` the newest of all of them."""
    found = await views.listing(client, all, limit)
    return {"approvals": [card for card in found if _may_see(visitor, card, client.settings)]}


@router.get("/approvals/{approval}")
async def one(approval: Name, client: Line, visitor: Visitor) -> Card:
    """One request, whole, with the lines that every surface shows."""
    card = await views.shown(client, approval)
    if not _may_see(visitor, card, client.settings):
        raise visible.hidden("approval", approval)
    return card


@router.post("/approvals/{approval}")
async def answer(approval: Name, asked: ApprovalAnswer, client: Line, visitor: Visitor) -> Card:
    """Answer it; the first answer counts, and who gave it is told."""
    return await views.answer(
        client,
        approval,
        asked.decision,
        visitor.user_id,
        pattern=asked.pattern,
        scope=asked.scope,
        reason=asked.reason,
        roles=visitor.roles,
    )


@router.get("/permissions")
async def standing(client: Line, visitor: Visitor) -> dict[str, list[Card]]:
    """What was allowed for good."""
    visible.owner(visitor.sight, "what was allowed for good")
    return {"permissions": await views.standing(client)}


@router.delete("/permissions/{permission}")
async def revoke(permission: Name, client: Line, visitor: Visitor) -> Card:
    """Take it back."""
    return await call(client, visitor, "revoke_permission", {"permission_id": permission})
