"""The mark of foreign text on a turn: what it was given that others wrote, and what it has read since.

Its journal says both. What is given comes with the conversation, with the request of another agent, with a task, with
the agent's own words where it changed them: a record `{"k": "foreign"}`, written as soon as it is known. What is read
are results of tools; those that show rows tell the rows' own marks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from shared import failpoints
from shared.guard.permissions import safeguards
from shared.store.origin import MADE
from shared.turns.records import Record

KIND = "foreign"
_LONGEST = 300


def mark_record(text: str, whence: str) -> Record:
    """The record that what came to the turn bears a mark: what was read, and where: `in this conversation`."""
    return {
        "k": KIND,
        "at": time.time_ns() // 1_000_000,
        "text": text[:_LONGEST],
        "whence": whence[:_LONGEST],
    }


def note(records: Sequence[Record], keep: Callable[[Record], None], text: str, whence: str) -> None:
    """Keep that record where there is something to keep; once is enough, also after a crash."""
    if text and not any(record["k"] == KIND for record in records):
        keep(mark_record(text, whence))


def mark(records: Iterable[Mapping[str, Any]]) -> str:
    """What a turn goes on from, or has read, that others wrote; "" for nothing."""
    known = list(records)
    found = next((text for record in known if (text := _of(record))), "")
    return found or safeguards.read_outside(known)


def describe(records: Iterable[Mapping[str, Any]]) -> str:
    """The same as a clause, for the person who is asked: `the turn has read view`, or where it was read before."""
    known = list(records)
    if read := safeguards.read_outside(known):
        return f"the turn has read {read}"
    for record in known:
        if text := _of(record):
            return f"{text} was read before, {record.get('whence') or 'for what the turn has read'}"
    return ""


def beside(why: str, records: Iterable[Mapping[str, Any]]) -> str:
    """Why a person is asked, and what was read until now: it may be that which asks."""
    found = describe(records)
    return why if not found or found in why else f"{why}; {found}"


def _of(record: Mapping[str, Any]) -> str:
    if failpoints.without("foreign-mark"):
        return ""
    if record.get("k") == KIND:
        return str(record.get("text", ""))
    content = record.get("content")
    if record.get("k") == "result" and not record.get("error") and isinstance(content, dict):
        return str(content.get(MADE) or "")
    return ""
