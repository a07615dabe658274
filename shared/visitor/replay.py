"""What a policy would have said of checks that are in the audit log, where that differs, and why, in words.

A row says what its call touched. One of a release that did not keep that says only the tool: then it follows from
the arguments, where the journal of its turn has them, and else from what every call of that tool touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import ToolError
from shared.guard.permissions import Policy, Ruling
from shared.guard.touching import UNKNOWN, spelled, told
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Audit, TurnStep
from shared.tools.registry import Registry, Tool

Card = dict[str, Any]
Arguments = Mapping[str, Card]  # of calls, by their keys
# What a check came to, as a rule would have to say it.
_VOTES = {
    "allow": "allow",
    "deny": "deny",
    "ask_approved": "ask",
    "ask_denied": "ask",
    "expired": "ask",
}


@dataclass(frozen=True)
class Check:
    """One row of the audit log, read: the tool, its category, its detail, what was touched."""

    tool: str
    category: str
    detail: str
    touched: tuple[str, ...]

    @property
    def does(self) -> str:
        """In words, what of it a person has to know."""
        return told(one.rpartition(":")[2] for one in self.touched)  # type: ignore[misc]


def read(row: Audit, registry: Registry, arguments: Arguments) -> Check:
    """What this row was about."""
    _, _, rest = row.action.partition(":")
    name, _, detail = rest.partition(":")
    category = str(row.detail.get("category", ""))
    if kept := str(row.detail.get("touches") or ""):
        return Check(name, category, detail, tuple(kept.split()))
    if name not in registry:
        return Check(name, category, detail, spelled(UNKNOWN.always, False) if "__" in name else ())
    tool = registry.get(name)
    return Check(name, category or tool.category, detail, _touched(tool, arguments.get(_call(row), {})))


def _touched(tool: Tool, arguments: Card) -> tuple[str, ...]:
    try:
        return tool.touched(tool.check(arguments) if arguments else None)
    except ToolError:
        return tool.touched()


def _call(row: Audit) -> str:
    return str(row.detail.get("call", ""))


def replay(policy: Policy, rows: Sequence[Audit], registry: Registry, arguments: Arguments) -> Card:
    """What it would have said: the votes, each check that would come out otherwise, and these by their reasons."""
    counts: Counter[str] = Counter()
    changed: list[Card] = []
    for row in rows:
        check = read(row, registry, arguments)
        ruling = policy.decide(check.tool, check.category, (check.detail,), check.touched)
        counts[ruling.vote] += 1
        if _VOTES.get(row.decision, row.decision) != ruling.vote:
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


async def arguments(store: Store, rows: Iterable[Audit], registry: Registry) -> Arguments:
    """The arguments of those calls whose row does not say what they touched, as far as it depends on them."""
    silent = (row for row in rows if not row.detail.get("touches") and _depends(row.action, registry))
    turns = list(dict.fromkeys(row.turn_id for row in silent if row.turn_id))
    found: dict[str, Card] = {}
    for start in range(0, len(turns), IN_LIMIT):
        where: Any = {"turn_id": ("in", turns[start : start + IN_LIMIT]), "kind": "model"}
        rounds: Counter[str] = Counter()
        for step in await store.select(TurnStep, where, order=[("number", "asc")]):
            rounds[step.turn_id] += 1
            blocks = step.detail.get("content") or []
            calls = [block for block in blocks if block.get("type") == "tool_use"]
            for number, block in enumerate(calls, 1):
                found[f"{step.turn_id}.{rounds[step.turn_id]}.{number}"] = dict(block.get("input") or {})
    return found


def _depends(action: str, registry: Registry) -> bool:
    name = action.split(":")[1] if ":" in action else ""
    tool = registry.get(name) if name in registry else None
    return bool(tool and tool.touches and tool.touches.by)
