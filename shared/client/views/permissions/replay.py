"""What a policy would have said of checks that are in the audit log, where that differs, and why, in words.

A row says what its call touched. One of a release that did not keep that says only the tool: then it follows from
the arguments, where the journal of its turn has them, and else from what every call of that tool touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.client.types import Card
from shared.errors import ToolError
from shared.guard.permissions.policy import Policy, Ruling
from shared.guard.permissions.touching import UNKNOWN, in_words, spelled
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Audit, TurnStep
from shared.tools.registry import Registry, Tool

_HOOKS = {"http_get": spelled(("address",), reads=True), "named_query": spelled(("records",), reads=True)}
# What a check came to, as a rule would have to say it.
_VOTES = {
    "allow": "allow",
    "deny": "deny",
    "ask_approved": "ask",
    "ask_denied": "ask",
    "expired": "ask",
}


@dataclass(frozen=True)
class CheckJournal:
    """What journals of turns say of calls in rows that do not say it: their arguments, and that a model made them."""

    arguments: Mapping[str, Card] = field(default_factory=dict)  # by the keys of calls
    looked: frozenset[str] = frozenset()  # turns that were looked for
    thought: frozenset[str] = frozenset()  # those of them that asked a model


@dataclass(frozen=True)
class Check:
    """One row of the audit log, read: the tool, its category, its detail, what was touched.

    `own`: a person's own command, which is their permission wherever the rules ask.
    """

    tool: str
    category: str
    detail: str
    touched: tuple[str, ...]
    own: bool = False

    @property
    def does(self) -> str:
        """In words, what of it a person has to know."""
        return in_words(one.rpartition(":")[2] for one in self.touched)  # type: ignore[misc]


def read(row: Audit, registry: Registry, journal: CheckJournal) -> Check:
    """What this row was about."""
    _, _, rest = row.action.partition(":")
    name, _, detail = rest.partition(":")
    category = str(row.detail.get("category", ""))
    if kept := str(row.detail.get("touches") or ""):
        own = row.detail.get("by") == "command"
        return Check(name, category, detail, tuple(kept.split()), own)
    if name not in registry:
        return Check(name, category, detail, _unlisted(row, name))
    tool = registry.get(name)
    own = row.turn_id in journal.looked - journal.thought
    given = journal.arguments.get(str(row.detail.get("call", "")), {})
    return Check(name, category or tool.category, detail, _touched(tool, given), own)


def _unlisted(row: Audit, name: str) -> tuple[str, ...]:
    """Of what is no tool of ours: the two that hooks alone have; what ran may have been anything."""
    if name in _HOOKS:
        return _HOOKS[name]
    return () if row.decision == "deny" else spelled(UNKNOWN.always, reads=False)


def _touched(tool: Tool, arguments: Card) -> tuple[str, ...]:
    try:
        return tool.touched(tool.check(arguments) if arguments else None)
    except ToolError:
        return tool.touched()


def replay(
    policy: Policy, rows: Sequence[Audit], registry: Registry, journal: CheckJournal | None = None
) -> Card:
    """What it would have said: the votes, each check that would come out otherwise, and these by their reasons."""
    counts: Counter[str] = Counter()
    changed: list[Card] = []
    for row in rows:
        check = read(row, registry, journal or CheckJournal())
        ruling = policy.decide(check.tool, check.category, (check.detail,), check.touched)
        counts[ruling.vote] += 1
        was = _VOTES.get(row.decision, row.decision)
        if was != ruling.vote and not (check.own and {was, ruling.vote} == {"allow", "ask"}):
            changed.append(_changed(row, check, ruling))
    return {
        "policy": policy.name,
        "checks": len(rows),
        "votes": dict(counts),
        "changed": changed,
        "reasons": _reasons(changed),
    }


def _changed(row: Audit, check: Check, ruling: Ruling) -> Card:
    why = f"it {check.does}" if check.does and ruling.vote != "allow" else ruling.why
    return {
        "action": row.action,
        "agent": row.agent,
        "was": row.decision,
        "was_by": str(row.detail.get("rule") or row.detail.get("why") or ""),
        "would_be": ruling.vote,
        "by": ruling.rule or ruling.why,
        "touches": list(check.touched),
        "why": why,
        "at": row.created_at.isoformat(),
    }


def _reasons(changed: Iterable[Card]) -> list[Card]:
    counts = Counter(
        (one["was"], one["would_be"], one["action"].split(":")[1], one["why"]) for one in changed
    )
    names = ("was", "would_be", "tool", "why")
    return [{**dict(zip(names, key, strict=True)), "checks": count} for key, count in counts.most_common()]


async def journal(store: Store, rows: Iterable[Audit], registry: Registry) -> CheckJournal:
    """Of those rows that do not say what was touched, what the journals of their turns say."""
    silent = (row for row in rows if not row.detail.get("touches") and _widens(row.action, registry))
    turns = list(dict.fromkeys(row.turn_id for row in silent if row.turn_id))
    found: dict[str, Card] = {}
    rounds: Counter[str] = Counter()
    for start in range(0, len(turns), IN_LIMIT):
        where: Any = {"turn_id": ("in", turns[start : start + IN_LIMIT]), "kind": "model"}
        for step in await store.select(TurnStep, where, order=[("number", "asc")]):
            rounds[step.turn_id] += 1
            blocks = step.detail.get("content") or []
            calls = [block for block in blocks if block.get("type") == "tool_use"]
            for number, block in enumerate(calls, 1):
                found[f"{step.turn_id}.{rounds[step.turn_id]}.{number}"] = dict(block.get("input") or {})
    return CheckJournal(found, frozenset(turns), frozenset(rounds))


def _widens(action: str, registry: Registry) -> bool:
    """Whether some call of that tool does more than work inside of what is open."""
    name = action.split(":")[1] if ":" in action else ""
    tool = registry.get(name) if name in registry else None
    return bool(tool and tool.touches and in_words(tool.touches.possible))
