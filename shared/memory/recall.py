"""Recall: what is remembered for a question, and what a search through it finds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.memory import bundle, episodes, nearness
from shared.memory.bundle import Bundle, Remembered
from shared.memory.nearness import Number, Speech
from shared.memory.scope import MemoryScope
from shared.store.base import Store
from shared.store.origin import Origin
from shared.store.query import IN_LIMIT
from shared.store.records import ConversationMessage, Memory
from shared.store.row import now

HITS, DRAWN_HITS = 60, 20  # rows of one search that are weighed against each other
SESSION_HITS = 300  # of one conversation, all of which is meant
SPEAK = 15  # the best of them speak for what stands beside them
NEAREST = 0.2  # of the best: what is further off is not remembered for a question
DRAWN = ("fact", "entity", "strategy", "goal")
_FROM = re.compile(r"\A\[from ([^\]\n]*)\]: ")
_LINE = re.compile(
    r"\A([^\W\d_][\w.'-]{0,30}(?: [\w.'-]{1,30})?): "
)  # of a text whose file names nobody else
_VALID: dict[str, Any] = {"archived": False, "valid_to": None}


@dataclass(frozen=True)
class _Near:
    """A row, and how near it is to the question as the Store counts it."""

    row: Memory
    worth: float


async def remember(
    store: Store,
    query: str,
    within: MemoryScope,
    *,
    shown: frozenset[Number] = frozenset(),
    at: datetime | None = None,
) -> Bundle:
    """The bundle for a question; `shown` are messages that stand in the conversation anyway."""
    drawn, turns = await asyncio.gather(
        _drawn(store, query, within), _turns(store, query, within.conditions())
    )
    found = drawn + [near for near in turns if _place(near.row) not in shown]
    goals = await _goals(store, within, {near.row.id for near in found})
    best = max((near.worth for near in found), default=0.0)
    moment = at or now()
    items = [
        _remembered(near, best, moment)
        for near in found
        if near.row.kind == "goal" or near.worth >= NEAREST * best
    ]
    return bundle.bundle([*items, *(_remembered(_Near(row, 0.0), 1.0, moment) for row in goals)])


async def search(store: Store, query: str, within: MemoryScope, limit: int) -> list[Remembered]:
    """What is remembered that fits a question, the best first: to look through, not for a prompt."""
    drawn, turns = await asyncio.gather(
        _drawn(store, query, within), _turns(store, query, within.conditions())
    )
    found = drawn + turns
    best, moment = max((near.worth for near in found), default=0.0), now()
    items = [_remembered(near, best, moment) for near in found]
    return sorted(items, key=lambda item: -item.score)[:limit]


async def search_session(store: Store, query: str, session: str, limit: int) -> list[Remembered]:
    """What was said in one conversation that fits a question, the best first; also what was said without memory."""
    found = await store.search(ConversationMessage, query, {"session_id": session}, SESSION_HITS)
    rows = {row.seq: row for row, _ in found.rows}
    best = [(session, row.seq) for row, _ in found.rows[:SPEAK]]
    near = {seq for _, seq in nearness.beside(best)} - rows.keys()
    for some in _slices(sorted(near)):
        where = {"session_id": session, "seq": ("in", some)}
        rows |= {row.seq: row for row in await store.select(ConversationMessage, where)}
    heard = {(session, seq): Speech(_speaker(row), said(row), _said_at(row)) for seq, row in rows.items()}
    worth = nearness.weigh(query, heard, max(rows, default=0))
    order = sorted(worth.items(), key=lambda item: (-item[1], -item[0][1]))
    order = [item for item in order if heard[item[0]].text.strip()][:limit]
    return [
        Remembered(
            id=str(rows[seq].id),
            kind="turn",
            text=heard[place, seq].text,
            score=value,
            at=_said_at(rows[seq]),
            subject=_speaker(rows[seq]),
            session_id=session,
            message_id=rows[seq].source_message_id or rows[seq].turn_id,
        )
        for (place, seq), value in order
    ]


def _said_at(row: ConversationMessage) -> datetime:
    return row.said_at or row.created_at


def said(row: ConversationMessage) -> str:
    """The words of a message, without who says them and the situation in which they were said."""
    return _FROM.sub("", _words(row), count=1)


def _words(row: ConversationMessage) -> str:
    texts = [str(block.get("text", "")) for block in row.content if block.get("type") == "text"]
    return "\n".join(text for text in texts if not text.startswith("[Current date and time:"))


def _speaker(row: ConversationMessage) -> str:
    text = _words(row)
    told = _FROM.match(text) or _LINE.match(text)
    return row.user_name or (told[1] if told else "") or row.user_id or row.role


async def _drawn(store: Store, query: str, within: MemoryScope) -> list[_Near]:
    """Facts and what else was drawn out."""
    near = []
    for where in within.conditions():
        fits = {**_VALID, **where, "kind": ("in", DRAWN)}
        near += [
            _Near(row, score) for row, score in (await store.search(Memory, query, fits, DRAWN_HITS)).rows
        ]
    return near


async def _goals(store: Store, within: MemoryScope, known: set[Any]) -> list[Memory]:
    """The newest goals, whatever the question is about."""
    rows: list[Memory] = []
    for where in within.conditions():
        fits = {**_VALID, **where, "kind": "goal"}
        order: Any = [("created_at", "desc")]
        rows += await store.select(Memory, fits, order=order, limit=bundle.MOST["goal"])
    return [row for row in rows if row.id not in known]


async def _turns(store: Store, query: str, conditions: Iterable[dict[str, Any]]) -> list[_Near]:
    """What was said, each with what those beside it hand to it."""
    rows: dict[Number, Memory] = {}
    best, among = 0.0, 0
    for where in conditions:
        fits = {**_VALID, **where, "kind": "turn"}
        found = await store.search(Memory, query, fits, HITS)
        rows |= {_place(row): row for row, _ in found.rows}
        best, among = max([best, *(score for _, score in found.rows)]), among + found.total
        near = nearness.beside(_place(row) for row, _ in found.rows[:SPEAK]) - rows.keys()
        for ids in _slices([episodes.key(session, seq) for session, seq in sorted(near)]):
            rows |= {_place(row): row for row in await store.select(Memory, {**fits, "id": ("in", ids)})}
    heard = {place: Speech(row.subject, row.body, row.created_at) for place, row in rows.items()}
    worth = nearness.weigh(query, heard, max([among, *(seq for _, seq in rows)]))
    # As the Store counts: what was drawn out is compared with it.
    scale = best / max(worth.values(), default=1.0)
    return [_Near(rows[place], value * scale) for place, value in worth.items()]


def _place(row: Memory) -> Number:
    return row.session_id or "", int(row.detail.get("seq") or 0)


def _remembered(near: _Near, best: float, at: datetime) -> Remembered:
    row = near.row
    nearest = near.worth / best if best else 0.0
    message = row.detail.get("message_id") if row.kind == "turn" else row.source
    return Remembered(
        id=str(row.id),
        kind=row.kind,
        text=row.body,
        score=bundle.score(row.kind, nearest, bundle.strength(row), row.created_at, at),
        at=row.created_at,
        subject=row.subject,
        session_id=row.session_id,
        message_id=str(message) if message else None,
        confidence=row.confidence if row.kind == "fact" else None,
        corrected=bool(row.superseded_by),
        foreign=Origin.of(row.origin).foreign,
    )


def _slices(values: Sequence[Any]) -> Iterable[list[Any]]:
    return (list(values[at : at + IN_LIMIT]) for at in range(0, len(values), IN_LIMIT))
