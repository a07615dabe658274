"""Upkeep: what was corrected, what says the same again and what faded goes into the archive; nothing is deleted.

What is not used fades: its salience halves with the months since it was made or used last. What is archived is not
recalled any more, and can be listed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Memory
from shared.store.row import now

HALF = 180.0  # days after which what nobody used counts half
FAINT = 0.05  # salience below which it is archived
UNSURE = 0.5  # confidence up to which a fact fades; what was said in so many words stays
_FADING = ("fact", "entity", "strategy")
_PAGE = 500  # rows that are looked at together


@dataclass(frozen=True)
class Upkept:
    """What came of it."""

    archived: int = 0
    kept: int = 0

    def __add__(self, other: Upkept) -> Upkept:
        return Upkept(self.archived + other.archived, self.kept + other.kept)


async def _always() -> bool:
    return True


async def consolidate(
    store: Store,
    where: Mapping[str, Any],
    going: Callable[[], Awaitable[bool]] = _always,
    at: datetime | None = None,
) -> Upkept:
    """Archive what need not be recalled of the rows that match; what was said stays as it is.

    `going` is asked before each page whether it is still ours to do.
    """
    moment = at or now()
    seen: set[bytes] = set()
    gone: list[UUID] = []
    kept = passed = 0
    order: Any = [("created_at", "desc")]
    fits = {**where, "archived": False, "kind": ("ne", "turn")}
    while await going():
        rows = await store.select(Memory, fits, order=order, limit=_PAGE, offset=passed)
        for row in rows:
            if _over(row, moment) or (key := _key(row)) in seen:
                gone.append(row.id)
            else:
                seen.add(key)
                kept += 1
        passed += len(rows)
        if len(rows) < _PAGE:
            break
    for start in range(0, len(gone), IN_LIMIT):
        await store.update(Memory, {"archived": True}, {"id": ("in", gone[start : start + IN_LIMIT])})
    return Upkept(len(gone), kept)


def faded(row: Memory, at: datetime) -> float:
    """The salience of a row by now."""
    days = max(0.0, (at - (row.used_at or row.created_at)).total_seconds() / 86_400)
    return row.salience * float(0.5 ** (days / HALF))


def _over(row: Memory, at: datetime) -> bool:
    if row.valid_to is not None and row.valid_to <= at:
        return True
    fades = row.kind in _FADING and (row.kind != "fact" or row.confidence <= UNSURE)
    return fades and faded(row, at) < FAINT


def _key(row: Memory) -> bytes:
    """What two rows that say the same have in common, of the least size: there may be very many."""
    words = " ".join(row.body.casefold().split())
    told = repr((row.user_id, row.project_id, row.kind, row.subject.casefold(), words))
    return hashlib.blake2b(told.encode(), digest_size=16).digest()
