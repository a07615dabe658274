"""The mark of foreign text on a turn: what it was given that others wrote, and what it has read since.

Its journal says both. What is given comes with the conversation, with the request of another agent, with a task, with
the agent's own words where it changed them: a `ForeignRecord`, written as soon as it is known. What is read
are results of tools; those that show rows tell the rows' own marks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from shared import failpoints
from shared.guard.permissions import safeguards
from shared.store.origin import MADE
from shared.turns.records import ForeignRecord, JournalRecord, Records, ResultRecord

_LONGEST = 300


def mark_record(text: str, whence: str) -> ForeignRecord:
    """The record that what came to the turn bears a mark: what was read, and where: `in this conversation`."""
    return ForeignRecord(at=time.time_ns() // 1_000_000, text=text[:_LONGEST], whence=whence[:_LONGEST])


def note(records: Records, keep: Callable[[JournalRecord], None], text: str, whence: str) -> None:
    """Keep that record where there is something to keep; once is enough, also after a crash."""
    if text and records.first(ForeignRecord) is None:
        keep(mark_record(text, whence))


def mark(records: Iterable[JournalRecord]) -> str:
    """What a turn goes on from, or has read, that others wrote; "" for nothing."""
    known = list(records)
    found = next((text for record in known if (text := _of(record))), "")
    return found or safeguards.read_outside(known)


def describe(records: Iterable[JournalRecord]) -> str:
    """The same as a clause, for the person who is asked: `the turn has read view`, or where it was read before."""
    known = list(records)
    if read := safeguards.read_outside(known):
        return f"the turn has read {read}"
    for record in known:
        if text := _of(record):
            whence = record.whence if isinstance(record, ForeignRecord) else ""
            return f"{text} was read before, {whence or 'for what the turn has read'}"
    return ""


def beside(why: str, records: Iterable[JournalRecord]) -> str:
    """Why a person is asked, and what was read until now: it may be that which asks."""
    found = describe(records)
    return why if not found or found in why else f"{why}; {found}"


def _of(record: JournalRecord) -> str:
    if failpoints.without("foreign-mark"):
        return ""
    if isinstance(record, ForeignRecord):
        return record.text
    if isinstance(record, ResultRecord) and not record.error:
        return str(record.content.get(MADE) or "")
    return ""
