"""Standing permissions that people gave by answering `always`: kept as settings, listed, revocable.

Each belongs to the person at whose request it was asked for, and holds in nobody else's turns. One of a release
that did not keep for whom holds for who gave it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from shared import failpoints, people
from shared.errors import ConfigurationError, UsageError
from shared.guard.permissions import bound
from shared.guard.permissions.policy import SHELLS, clean, literal, pattern, policy
from shared.guard.permissions.requests import ApprovalRequest, Decided, storable
from shared.store.base import Store
from shared.store.records import Setting
from shared.store.row import derived

Scope = Literal["session", "project", "everywhere"]
SCOPE = "permissions"  # of the settings that hold them


@dataclass(frozen=True)
class CallOrigin:
    """Where a call is made: what a grant's scope is compared with."""

    session: str
    agent: str
    project: str
    person: str  # at whose request


def holder(grant: Mapping[str, Any]) -> str:
    """For whom it holds; "" for nobody."""
    return str((grant.get("for") if "for" in grant else grant.get("by")) or "")


async def read(store: Store) -> list[dict[str, Any]]:
    """All grants, oldest first, each with its `id`."""
    rows = await store.select(Setting, {"scope": SCOPE}, order=[("created_at", "asc")])
    return [
        {"id": row.key, **row.value, "for": holder(row.value)} for row in rows if isinstance(row.value, dict)
    ]


async def revoke(store: Store, id: str) -> None:
    """End a grant; UsageError where there is none of that id."""
    if not await store.delete(Setting, {"scope": SCOPE, "key": id}):
        raise UsageError(
            f"there is no standing permission {id!r}", "", "promptdock approvals list shows them"
        )


def check(card: ApprovalRequest, wanted: str, scope: str) -> tuple[str, str]:
    """The pattern and scope of an `always`; UsageError where they cannot be used for what was asked."""
    scope = scope or "session"
    if scope not in get_args(Scope):
        raise UsageError(f"there is no scope {scope!r}", f"there are: {', '.join(get_args(Scope))}")
    if not card.user_id:
        raise UsageError(
            "it cannot be allowed for good",
            "a standing permission belongs to the person who asked, and nobody did",
            "allow it once",
        )
    if not people.signs(card.user_id):
        raise UsageError(
            "it cannot be allowed for good",
            f"whoever says that they are {people.called(card.user_id)} asked for it, and nobody knows who that is",
            "allow it once",
        )
    text = wanted or card.pattern
    try:
        compiled = pattern(text)
    except ConfigurationError as error:
        raise UsageError(error.what, error.why, error.fix) from None
    if not compiled.fullmatch(clean(card.action)):
        raise UsageError(
            "the pattern does not match what was asked",
            f"{text!r} does not match the whole of {card.action[:200]!r}",
            "correct it, or allow once",
        )
    return text, scope


def row(card: ApprovalRequest, decided: Decided) -> Setting:
    """The grant that an `always` makes; written twice it is written once."""
    value = {
        "pattern": decided.pattern,
        "scope": decided.scope,
        "agent": card.agent,
        "session": card.session,
        "project": card.project,
        "action": storable(card.action),
        "for": card.user_id,
        "by": decided.by,
        "at": decided.at,
    }
    # Who wrote a pattern of their own said what it is about; one for this very call is for what was shown.
    if decided.pattern == card.pattern and (kept := bound.lasting(card.bound)):
        value["bound"] = kept
    id = str(derived("grant", card.id))
    return Setting(id=derived("grant", card.id), scope=SCOPE, key=id, value=value)


def applying(grants: Iterable[dict[str, Any]], where: CallOrigin) -> list[dict[str, Any]]:
    """Those that hold here."""
    found = []
    for grant in grants:
        match grant.get("scope"):
            case "session":
                holds = grant.get("session") == where.session and grant.get("agent") == where.agent
            case "project":
                holds = grant.get("agent") == where.agent and grant.get("project") == where.project
            case other:
                holds = other == "everywhere"
        if holds and _whose(grant, where):
            found.append(grant)
    return found


def _whose(grant: dict[str, Any], where: CallOrigin) -> bool:
    if failpoints.without("standing-person"):
        return True
    return bool(where.person) and holder(grant) == where.person


def covers(
    grants: Sequence[dict[str, Any]],
    tool: str,
    category: str,
    details: Sequence[str],
    exact: bool = False,
    facts: Mapping[str, str] | None = None,
) -> dict[str, Any] | None:
    """The grant that allows a call. One that is the literal action needs no judgement of a command's text.

    With `exact`, only such a one counts. One that is bound counts only where the `facts` are those it is bound to.
    """
    grants = [one for one in grants if not bound.changed(one.get("bound") or {}, facts or {})]
    action = literal(f"tool:{tool}:{details[0]}")
    for grant in grants:
        if grant.get("pattern") == action:
            return grant
    for grant in () if exact else grants:
        try:
            rules = policy("standing", allow=[str(grant.get("pattern", ""))])
        except ConfigurationError:
            continue  # of a release that took other patterns
        if rules.decide(tool, category, details).vote == "allow":
            return grant
    return None


def needs_each_time(tool: str, mode: str) -> bool:
    """Without any sandbox each command is asked for, whatever was allowed before."""
    return tool in SHELLS and mode == "none" and not failpoints.without("no-sandbox")


def needs_naming(tool: str, mode: str) -> bool:
    """Under Landlock, which does not hold all, a command is asked for, or was allowed for good word by word."""
    return tool in SHELLS and mode == "landlock" and not failpoints.without("landlock-asks")
