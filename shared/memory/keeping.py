"""Keeping what was drawn out: new beside the old, a correction in its place, and once, however often it is applied.

What is true no longer is not overwritten: its row ends (`valid_to`) and names what superseded it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from shared.memory.extraction import CONFIDENCE, Drawn, DrawnFact, DrawnGoal, DrawnStrategy
from shared.memory.scope import DEFAULT, kept_in
from shared.redaction import conceal
from shared.store.base import Store
from shared.store.records import Memory, MemoryKind, Setting, derived
from shared.store.row import now

APPLIER = "memory"  # of the outbox
_REACHED = "memory"  # the scope of the setting that says how far a conversation was drawn from


@dataclass(frozen=True)
class Draw:
    """What was drawn out of turns of one conversation, on its way to the Store."""

    id: str
    user_id: str
    project: str
    session: str
    last: str  # the moment until which it draws: what reaches no further was applied before
    by: str  # the model that drew it, or what stands in its place
    turns: list[dict[str, Any]]  # of each turn row: id, source
    known: list[str]  # ids of the facts that were shown, as K1, K2, …
    drawn: dict[str, Any]
    origin: dict[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """As the outbox carries it."""
        return asdict(self)


async def apply(store: Store, draws: list[dict[str, Any]]) -> None:
    """Keep what was drawn (from the outbox)."""
    for values in draws:
        draw = Draw(**values)
        if draw.last <= await reached(store, draw.session):
            continue
        drawn = Drawn.model_validate(draw.drawn)
        keeper = _Keeper(store, draw)
        for number, fact in enumerate(drawn.facts):
            await keeper.fact(number, fact)
        for number, entity in enumerate(drawn.entities):
            if entity.name:
                await keeper.replaced("entity", number, entity.name, entity.text, entity.source)
        for number, strategy in enumerate(drawn.strategies):
            await keeper.strategy(number, strategy)
        for number, goal in enumerate(drawn.goals):
            await keeper.goal(number, goal)
        row_id, told = derived("setting", _REACHED, draw.session), {"last": draw.last}
        await store.upsert([Setting(id=row_id, scope=_REACHED, key=draw.session, value=told)])


async def reached(store: Store, session: str) -> str:
    """The moment until which a conversation was drawn from; "" for never."""
    rows = await store.select(Setting, {"scope": _REACHED, "key": session}, limit=1)
    return str(rows[0].value.get("last") or "") if rows else ""


class _Keeper:
    def __init__(self, store: Store, draw: Draw) -> None:
        self._store, self._draw = store, draw

    async def fact(self, number: int, fact: DrawnFact) -> None:
        """A new fact; what it corrects, or what has its title, ends."""
        everywhere = DEFAULT if fact.everywhere else self._draw.project
        row = self._row("fact", number, fact.title, fact.text, fact.source, everywhere)
        row = row.model_copy(update={"confidence": CONFIDENCE[fact.sure], "context": fact.sure})
        same = await self._titled("fact", fact.title, everywhere) if fact.title else []
        for old in same:
            if _plain(old.body) == _plain(fact.text):
                await self._again(old, confidence=max(old.confidence, row.confidence))
                return
        corrected = [old for old in same if old.id != row.id and fact.about]
        corrected += [old for old in await self._named(fact.corrects) if old.id != row.id]
        await self._keep(row)
        await self._supersede({old.id: old for old in corrected}.values(), row)

    async def replaced(self, kind: MemoryKind, number: int, title: str, text: str, source: int) -> None:
        """What is known by its name: the newest text holds."""
        row = self._row(kind, number, title, text, source, self._draw.project)
        same = await self._titled(kind, title, self._draw.project)
        for old in same:
            if _plain(old.body) == _plain(text):
                await self._again(old)
                return
        await self._keep(row)
        await self._supersede((old for old in same if old.id != row.id), row)

    async def strategy(self, number: int, strategy: DrawnStrategy) -> None:
        """A way to go about something: what was tried before counts on."""
        row = self._row(
            "strategy", number, strategy.situation, strategy.text, strategy.source, self._draw.project
        )
        worked = int(strategy.worked)
        for old in await self._titled("strategy", strategy.situation, self._draw.project):
            if _plain(old.body) == _plain(strategy.text):
                await self._again(old, successes=old.successes + worked)
                return
        await self._keep(row.model_copy(update={"uses": 1, "successes": worked}))

    async def goal(self, number: int, goal: DrawnGoal) -> None:
        """A goal that is new, or one that is no more."""
        title = _plain(goal.text)[:200]
        same = await self._titled("goal", title, self._draw.project)
        if goal.state == "active" and not same:
            await self._keep(self._row("goal", number, title, goal.text, goal.source, self._draw.project))
        elif goal.state != "active":
            for old in same:
                await self._store.update(Memory, {"valid_to": now(), "context": goal.state}, {"id": old.id})

    def _row(self, kind: MemoryKind, number: int, title: str, text: str, source: int, project: str) -> Memory:
        draw = self._draw
        turn = draw.turns[source - 1] if 0 < source <= len(draw.turns) else {}
        return Memory(
            id=derived("memory", draw.id, kind, number),
            kind=kind,
            **kept_in(project, draw.user_id),
            session_id=draw.session,
            user_id=draw.user_id,
            subject=conceal(title),
            body=conceal(text),
            source=turn.get("source"),
            detail={"drawn_by": draw.by, "draw": draw.id, "said_in": turn.get("id")},
            origin=draw.origin,
        )

    async def _keep(self, row: Memory) -> None:
        if not await self._store.count(Memory, {"id": row.id}):  # applied again, it may be corrected by now
            await self._store.upsert([row])

    async def _titled(self, kind: MemoryKind, title: str, project: str) -> list[Memory]:
        """What is valid of this title, of this person in this project."""
        place = kept_in(project)["project_id"]
        where = {"kind": kind, "user_id": self._draw.user_id, "project_id": place}
        where |= {"valid_to": None, "archived": False}
        found = await self._store.search(Memory, title, where, 50) if title else None
        return [row for row, _ in found.rows if _plain(row.subject) == _plain(title)] if found else []

    async def _named(self, corrects: str | None) -> list[Memory]:
        """The fact that the model was shown by that number, where it is the person's own."""
        number = int(corrects[1:]) if corrects and corrects[:1] == "K" and corrects[1:].isdigit() else 0
        if not 0 < number <= len(self._draw.known):
            return []
        where = {"id": self._draw.known[number - 1], "user_id": self._draw.user_id, "valid_to": None}
        return await self._store.select(Memory, where)

    async def _again(self, old: Memory, **changes: Any) -> None:
        """It was said again; once for one draw."""
        if old.detail.get("draw") == self._draw.id or old.detail.get("again") == self._draw.id:
            return
        detail = {**old.detail, "again": self._draw.id}
        told = {
            "uses": old.uses + 1,
            "used_at": now(),
            "salience": min(1.0, old.salience + 0.1),
            "detail": detail,
        }
        await self._store.update(Memory, {**told, **changes}, {"id": old.id})

    async def _supersede(self, rows: Iterable[Memory], new: Memory) -> None:
        await supersede(self._store, rows, new)


async def supersede(store: Store, rows: Iterable[Memory], new: Memory) -> None:
    """End rows for a new one; the turn that said what held until then is remembered as corrected."""
    for old in rows:
        ended = {"valid_to": new.valid_from, "superseded_by": new.id}
        await store.update(Memory, ended, {"id": old.id, "valid_to": None})
        said = old.detail.get("said_in")
        if said and said != new.detail.get("said_in"):
            await store.update(Memory, {"superseded_by": new.id}, {"id": said, "kind": "turn"})


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")
