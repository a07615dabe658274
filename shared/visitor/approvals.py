"""Requests for leave, as a gateway lists and answers them, and what people allowed for good."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from shared.bus.messages import Decision, Output
from shared.errors import Denied, TimedOut, UsageError
from shared.guard import bound, grants
from shared.guard.approvals import Approvals, Decided
from shared.guard.approvals import Card as Asked
from shared.guard.display import plain
from shared.store.records import Approval
from shared.visitor.visitor import Visitor

Card = dict[str, Any]
_LOOK = 0.1  # seconds between two looks for the decision


async def listing(visitor: Visitor, everything: bool = False, limit: int = 200) -> list[Card]:
    """The open requests, the oldest first; with `everything`, the newest of all of them. Reads the Store."""
    store = await visitor.store()
    if everything:
        rows = await store.select(Approval, order=[("created_at", "desc")], limit=limit)
    else:
        rows = await store.select(Approval, {"state": "pending"}, order=[("created_at", "asc")], limit=limit)
    return [
        {
            "id": row.approval_id,
            "agent": row.agent,
            "user_id": row.user_id,
            "session": row.session_id,
            "action": row.action,
            "arguments": row.arguments,
            "why": row.why,
            "bound": row.bound,
            "bound_to": bound.told(row.bound),
            "state": row.state,
            "decided_by": row.decided_by,
            "reason": row.reason,
            "pattern": row.pattern,
            "scope": row.scope,
            "created_at": row.created_at.isoformat(),
            "expires_at": row.expires_at.isoformat() if row.expires_at else None,
        }
        for row in rows
    ]


async def waiting(visitor: Visitor, session: str, user_id: str) -> list[Output]:
    """The requests that wait for this person in a session, the oldest first, as they were put."""
    cards = await Approvals(visitor.bus, visitor.names).waiting(session)
    return [
        Output(
            user_id=user_id,
            content=f"{card.agent.capitalize()} waits for your permission: {plain(card.action)}\n"
            f"Why: {plain(card.why)}"
            + (f"\nBound to: {plain(told)}" if (told := bound.told(card.bound)) else ""),
            status="awaiting_approval",
            id=f"{card.turn}.ask.{card.id}",
            session_id=session,
            in_reply_to=card.turn if card.in_turn else None,
            approval=card.shown(),
        )
        for card in cards
        if card.user_id == user_id
    ]


async def standing(visitor: Visitor) -> list[Card]:
    """What people allowed for good, the oldest first."""
    found = await grants.read(await visitor.store())
    return [{**one, "bound_to": bound.told(one.get("bound") or {})} for one in found]


async def answer(
    visitor: Visitor,
    approval_id: str,
    decision: Decision,
    user_id: str,
    *,
    pattern: str | None = None,
    scope: Literal["session", "project", "everywhere"] | None = None,
    reason: str | None = None,
    roles: Sequence[str] = (),
    patience: float = 30.0,
) -> Card:
    """Answer a request and await what holds then. UsageError for an unknown one, Denied where it is refused."""
    await visitor.reach()
    approvals = Approvals(visitor.bus, visitor.names)
    card = await approvals.find(approval_id)
    if card is None:
        raise UsageError(f"there is no request for leave {approval_id!r}", "", "promptdock approvals list")
    if decision == "always":
        _usable(card, pattern, scope)
    async with visitor.outputs() as heard:
        sent = await visitor.decide(
            *(approval_id, decision, user_id),
            pattern=pattern,
            scope=scope,
            reason=reason,
            roles=roles,
            arguments_hash=card.arguments_hash,
        )
        refused = asyncio.create_task(_refusal(heard, sent.id))
        try:
            async with asyncio.timeout(patience):
                while (held := await approvals.decision(approval_id)) is None and not refused.done():
                    await asyncio.wait({refused}, timeout=_LOOK)
        except TimeoutError:
            why = "Chatter did not take the answer; it is kept"
            raise TimedOut("nothing was decided yet", why, "see promptdock status") from None
        finally:
            refused.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await refused
        if held is None:  # a refusal may have come just before somebody's decision
            held = await approvals.decision(approval_id)
        if held is not None:
            return _told(card, held, sent.id)
        raise Denied(refused.result(), "", "promptdock approvals list shows who may answer")


def _usable(card: Asked, pattern: str | None, scope: str | None) -> None:
    """UsageError for an `always` that Chatter would not take: nothing is sent then."""
    try:
        grants.check(card, pattern or "", scope or "")
    except UsageError as error:
        fix = f"correct --pattern, or allow it once: promptdock approvals allow {card.id}"
        raise UsageError(error.what, error.why, fix) from None


def _told(card: Asked, held: Decided, message_id: str) -> Card:
    return {
        "id": card.id,
        **{name: value for name, value in asdict(held).items() if name not in ("roles", "message")},
        "told": held.told(card.user_id),
        **({"for": card.user_id} if held.how == "always" else {}),
        "yours": held.message == message_id,
    }


async def _refusal(heard: Any, message_id: str) -> str:
    """The closing output that answers the message, where it changes nothing."""
    async for item in heard:
        if message_id in item.output.answers:
            return str(item.output.content)
    return ""
