"""Requests for permission, as a gateway lists and answers them, and what people allowed for good."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Literal

from shared import people
from shared.bus.decisions import decision as decides
from shared.bus.messages import Output, PersonDecision
from shared.client.client import Client
from shared.client.text.safe import line
from shared.client.types import Card
from shared.errors import Denied, PromptDockError, TimedOut, UsageError
from shared.guard.permissions import about, bound, grants
from shared.guard.permissions.about import About
from shared.guard.permissions.requests import ApprovalRequest as Asked
from shared.guard.permissions.requests import Approvals, Decided
from shared.redaction import redacted
from shared.store.records import Approval
from shared.tasks import questions

_LOOK = 0.1  # seconds between two looks for the decision
NUMBERED = {"1": "yes", "2": "always", "3": "no"}
SHORT = about.SHORT  # letters of an id that are shown
_REACH = 3.0  # seconds that looking for the words of a request may take
_LEAST = 4  # letters of an id that name a request
_NEWEST = 500  # of the requests of before


async def listing(client: Client, everything: bool = False, limit: int = 200) -> list[Card]:
    """The open requests, the oldest first; with `everything`, the newest of all of them. Reads the Store."""
    store = await client.store()
    if everything:
        rows = await store.select(Approval, order=[("created_at", "desc")], limit=limit)
    else:
        rows = await store.select(Approval, {"state": "pending"}, order=[("created_at", "asc")], limit=limit)
    cards = await _cards(client, [row.approval_id for row in rows])
    return [_listed(row, cards.get(row.approval_id) or of_row(row)) for row in rows]


async def _cards(client: Client, ids: list[str]) -> dict[str, Asked]:
    """The requests as they were put, by their ids; {} while the cluster is down."""
    if not ids:
        return {}
    try:
        async with asyncio.timeout(_REACH):
            await client.reach()
            found = [await Approvals(client.bus, client.names).find(id) for id in ids]
    except (PromptDockError, TimeoutError):
        return {}
    return {card.id: card for card in found if card is not None}


def of_row(row: Approval) -> Asked:
    """A request as the Store has it, which is without its words."""
    return Asked(
        id=row.approval_id, call=row.call_id or "", agent=row.agent, session=row.session_id or "",
        user_id=row.user_id or "", turn=row.turn_id or "", home="", tool=row.action.split(":")[1],
        action=row.action, arguments=row.arguments, arguments_hash=row.arguments_hash, why=row.why,
        pattern=row.pattern or "", project="", at=_ms(row.created_at),
        expires_at=_ms(row.expires_at or row.created_at), bound=row.bound,
    )  # fmt: skip


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _listed(row: Approval, card: Asked) -> Card:
    return {
        "id": row.approval_id,
        "short": row.approval_id[: about.SHORT],
        "agent": row.agent,
        "user_id": row.user_id,
        "session": row.session_id,
        "action": row.action,
        "arguments": row.arguments,
        "why": row.why,
        "bound": row.bound,
        "bound_to": bound.describe(row.bound),
        "state": row.state,
        "decided_by": row.decided_by,
        "reason": row.reason,
        "pattern": row.pattern,
        "scope": row.scope,
        "created_at": row.created_at.isoformat(),
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
        "project": card.project,
        "does": about.does(card),
        "about": redacted(About.of(card.about).kept()),
    }


async def shown(client: Client, name: str) -> Card:
    """One request, whole: `lines` is how every surface puts it. UsageError for an unknown one."""
    store = await client.store()
    rows = await store.select(Approval, {"approval_id": name}, limit=1)
    if not rows:
        newest = await store.select(Approval, order=[("created_at", "desc")], limit=_NEWEST)
        rows = [row for row in newest if len(name) >= _LEAST and row.approval_id.startswith(name)]
    if len(rows) != 1:
        raise _unknown(name, [row.approval_id for row in rows])
    card = (await _cards(client, [rows[0].approval_id])).get(rows[0].approval_id) or of_row(rows[0])
    return _listed(rows[0], card) | {"lines": about.lines(card)}


async def find(client: Client, name: str) -> Asked:
    """The request of that id, or the open one whose id begins so; UsageError for none, or for several."""
    approvals = Approvals(client.bus, client.names)
    if card := await approvals.find(name):
        return card
    open_now = await approvals.everywhere() if len(name) >= _LEAST else []
    found = [card for card in open_now if card.id.startswith(name.lower())]
    if len(found) != 1:
        raise _unknown(name, [card.id for card in found])
    return found[0]


def _unknown(name: str, found: list[str]) -> UsageError:
    if found:
        return UsageError(f"several requests begin with {name!r}", ", ".join(found), "give more of the id")
    return UsageError(f"there is no request for permission {name!r}", "", "promptdock approvals list")


async def decided(client: Client, id: str) -> bool:
    """Whether a request has its answer."""
    return await became(client, id) is not None


async def became(client: Client, id: str) -> Decided | None:
    """What became of a request; None while it is open."""
    return await Approvals(client.bus, client.names).decision(id)


def request_id(output: Output) -> str:
    """The id of the request that an output puts."""
    return str((output.approval or {}).get("id", output.id))


def does(output: Output, width: int) -> str:
    """What the request that an output puts asks for, on one line."""
    approval = output.approval or {}
    words = approval.get("about")
    found = str(words.get("does") or "") if isinstance(words, dict) else ""
    return line(found or f"use {approval.get('tool') or 'a tool'}", width)


def worded(text: str) -> str:
    """What a person typed at a request: a number by its word, `1 b35d865e` as `yes b35d865e`."""
    number, _, rest = text.strip().partition(" ")
    number = number.rstrip(".)")
    return f"{NUMBERED[number]} {rest}".strip() if number in NUMBERED else text


def lasts(card: Mapping[str, Any] | None) -> bool:
    """Whether a request may be answered with `always`; to a card that names no options any answer may be given."""
    options = (card or {}).get("options")
    return not isinstance(options, list) or not options or "always" in options


def beyond(text: str, open_now: Iterable[str]) -> str:
    """Which numbers answer a request, where a text is another one, bare or with a request's id; "" for all else."""
    number, _, rest = text.strip().partition(" ")
    wanted = rest.strip().casefold()
    if wanted and not any(len(wanted) >= _LEAST and id.casefold().startswith(wanted) for id in open_now):
        return ""  # words that begin with a number
    return questions.beyond(number, len(NUMBERED))


async def mine(client: Client, user_id: str) -> list[Asked]:
    """The requests that wait for this person, in whichever session, the oldest first."""
    await client.reach()
    everywhere = await Approvals(client.bus, client.names).everywhere()
    return [card for card in everywhere if people.sees(user_id, card.user_id)]


async def waiting(client: Client, session: str, user_id: str) -> list[Output]:
    """The requests that wait for this person in a session, the oldest first, as they were put."""
    cards = await Approvals(client.bus, client.names).waiting(session)
    return [
        Output(
            user_id=user_id,
            content="\n".join(about.lines(card, "waits for your permission")),
            status="awaiting_approval",
            id=f"{card.turn}.ask.{card.id}",
            session_id=session,
            in_reply_to=card.turn if card.in_turn else None,
            approval=card.shown(),
            timestamp=datetime.fromtimestamp(card.at / 1000, UTC).isoformat(timespec="milliseconds"),
        )
        for card in cards
        if people.sees(user_id, card.user_id)
    ]


async def answered(client: Client, session: str, user_id: str, text: str) -> bool:
    """Whether these words answer a request that waits in a session now, and so wait behind nothing themselves."""
    if not decides(worded(text)):
        return False
    try:
        return bool(await waiting(client, session, user_id))
    except PromptDockError:
        return False


async def standing(client: Client) -> list[Card]:
    """What people allowed for good, the oldest first."""
    found = await grants.read(await client.store())
    return [{**one, "bound_to": bound.describe(one.get("bound") or {})} for one in found]


async def answer(
    client: Client,
    approval_id: str,
    decision: PersonDecision,
    user_id: str,
    *,
    pattern: str | None = None,
    scope: Literal["session", "project", "everywhere"] | None = None,
    reason: str | None = None,
    roles: Sequence[str] = (),
    patience: float = 30.0,
) -> Card:
    """Answer a request and await what holds then. UsageError for an unknown one, Denied where it is refused."""
    await client.reach()
    approvals = Approvals(client.bus, client.names)
    card = await find(client, approval_id)
    approval_id = card.id
    if decision == "always":
        _usable(card, pattern, scope)
    async with client.outputs() as heard:
        sent = await client.decide(
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
