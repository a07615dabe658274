"""What must hold whatever broke, checked over everything that was sent, said, heard, stored and bought."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from shared.bus.messages import CLOSING
from tests.faults.cluster import Cluster, happens
from tests.faults.person import Person
from tests.faults.workload import Load

_ANSWER = re.compile(r"re: (.*?)(?: #(\d+))?", re.DOTALL)
_BROKEN = (
    *("lost", "doubled", "order", "unseen", "rebought", "asked_twice", "unstored", "gaps", "left"),
    *("effects", "missed", "swapped", "errors"),
)
# Plain PUBLISH is promised to arrive where one worker hears it and lives on. In `poison` all of them keep dying,
# and what kills them is closed by an error.
_FREE = {"poison": ("missed", "swapped", "errors")}
_GAPS = """
    select session_id from conversation_messages group by session_id
    having count(*) != count(distinct seq) or count(*) != max(seq) or min(seq) != 1
"""
_TWICE = """
    select count(distinct message_id) - 1 as more from messages where type = 'question'
    group by json_extract(payload, '$.question') having more > 0
"""


@dataclass
class Findings:
    """The figures of one row. Those in `broken` must be zero."""

    row: str = ""
    sent: int = 0
    answered: int = 0
    errors: int = 0  # messages that were closed by an error
    lost: int = 0  # acknowledged or heard, and never closed
    doubled: int = 0  # closed more than once
    order: int = 0  # closed before one that was sent earlier by the same person
    missed: int = 0  # plain PUBLISH that somebody heard, and that was not taken in
    swapped: int = 0  # plain PUBLISH that was taken in after a later one of the same person
    unseen: int = 0  # said to the person, and never heard by the person's gateway
    rebought: int = 0  # model answers bought again although they were stored
    in_flight: int = 0  # model answers bought again because their first buyer died with them
    asked_twice: int = 0  # consults that were asked more than once
    unstored: int = 0  # acknowledged messages that are not in the Store
    gaps: int = 0  # conversations in the Store with a number missing or double
    left: int = 0  # keys that should be gone
    effects: int = 0  # tool effects missing or repeated
    stale: int = 0  # late commits that were refused
    faults: int = 0
    seconds: float = 0.0
    growth: float | None = None  # KiB that a worker grew per 1,000 messages
    recoveries: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def broken(self) -> dict[str, int]:
        """The promises that did not hold."""
        free = _FREE.get(self.row, ())
        return {name: getattr(self, name) for name in _BROKEN if getattr(self, name) and name not in free}

    def quantile(self, share: float) -> float:
        """Seconds until this share of what a fault interrupted had another owner; 0 where nothing was."""
        if len(self.recoveries) < 2:
            return max(self.recoveries, default=0.0)
        return statistics.quantiles(self.recoveries, n=100, method="inclusive")[round(share * 100) - 1]

    def line(self) -> str:
        """The figures, in one line."""
        told = {name: getattr(self, name) for name in ("faults", "sent", "answered")}
        broken = self.broken or {"broken": 0}
        told |= {**broken, "in_flight": self.in_flight, "stale": self.stale}
        told |= {"errors": self.errors, "missed": self.missed, "swapped": self.swapped}
        figures = " ".join(f"{name}={value}" for name, value in told.items())
        if self.recoveries:
            figures += f" recovery p50={self.quantile(0.5):.2f}s p99={self.quantile(0.99):.2f}s"
        if self.growth is not None:
            figures += f" growth={self.growth:.0f}KiB/1000"
        return f"{self.row:24s} {figures} ({self.seconds:.0f} s)"


@dataclass(frozen=True)
class Mark:
    """What had been counted when a row began."""

    rebought: int
    in_flight: int
    stale: int
    recoveries: int
    out: str  # the last thing that was said

    @classmethod
    async def now(cls, cluster: Cluster) -> Mark:
        """The counts of this moment."""
        model, stream = cluster.model, f"{cluster.queues['chatter'].prefix}out"
        newest = await cluster.bus.command("XREVRANGE", stream, "+", "-", "COUNT", 1)
        last = newest[0][0].decode() if newest else "0-0"
        return cls(len(model.backward()), model.again(), await cluster.stale(), len(cluster.recoveries), last)


async def check(
    cluster: Cluster,
    since: Mark,
    *loads: Load,
    row: str,
    person: Person | None = None,
    patience: float = 40.0,
) -> Findings:
    """Wait until nothing is left to do, then look at everything that came since a mark."""
    found = Findings(row)
    if not await cluster.quiet(patience):
        found.notes.append(f"not quiet after {patience:g} s")
    await cluster.recovered()
    await arrived(lambda: _unanswered(cluster, since.out, loads), lambda: cluster.quiet(patience))
    said = await _said(cluster, since.out)
    for load in loads:
        mine = [output for output in said if str(output["user_id"]).startswith(f"{load.tag}-")]
        _own(load, mine, found)
        _plain(load, mine, found)
        found.sent += load.sent
    if person is not None:
        await _seen(person, said, found)
    rebought = cluster.model.backward()[since.rebought :]
    found.rebought = len(rebought)
    if rebought:
        found.notes += [*rebought[:5], *cluster.frozen[-5:]]
    found.in_flight = cluster.model.again() - since.in_flight
    leftovers = await cluster.leftovers()
    found.left = len(leftovers)
    found.notes += leftovers[:5]
    found.stale = await cluster.stale() - since.stale
    found.recoveries = cluster.recoveries[since.recoveries :]
    await asyncio.to_thread(_stored, cluster, loads, found)
    return found


async def arrived(
    missing: Callable[[], Awaitable[int]], quiet: Callable[[], Awaitable[bool]], seconds: float = 5.0
) -> None:
    """Wait for answers to plain messages, as long as more of them come.

    No queue knows of what an intake has heard and not yet handed in: who heard it last waits 3 s for the others, and
    on a busy machine each of these messages is then a turn of its own.
    """
    left = await missing()
    while left:

        async def fewer(than: int = left) -> bool:
            return await missing() < than

        if not await happens(fewer, seconds):
            return
        await quiet()
        left = await missing()


async def _unanswered(cluster: Cluster, after: str, loads: tuple[Load, ...]) -> int:
    """How much less was answered than was published; an error is an answer too."""
    wanted = Counter(user for load in loads for user, texts in load.published.items() for _ in texts)
    return (wanted - Counter(str(output["user_id"]) for output in await _said(cluster, after))).total()


async def _said(cluster: Cluster, after: str) -> list[dict[str, Any]]:
    """Every closing output since then, in order."""
    out: list[dict[str, Any]] = []
    stream = f"{cluster.queues['chatter'].prefix}out"
    while entries := await cluster.bus.command("XRANGE", stream, f"({after}", "+", "COUNT", 1000):
        out += [json.loads(fields[1]) for _, fields in entries]
        after = entries[-1][0].decode()
    return [output for output in out if output["status"] in CLOSING]


def _own(load: Load, said: list[dict[str, Any]], found: Findings) -> None:
    closed: Counter[str] = Counter()
    order: dict[str, list[int]] = defaultdict(list)
    for output in said:
        for identity in output.get("answers", []):
            if identity not in load.acknowledged:
                continue
            closed[identity] += 1
            kind, _, number = load.words[identity].split(" ")
            if output["status"] == "error" and kind != "amend":  # which may find no turn that runs
                _failed(output, found)
            if kind not in ("amend", "stop"):
                order[load.acknowledged[identity]].append(int(number))
    missing = [identity for identity in load.acknowledged if not closed[identity]]
    twice = [identity for identity, count in closed.items() if count > 1]
    found.answered += len(closed)
    found.lost += len(missing)
    found.doubled += sum(closed[identity] - 1 for identity in twice)
    found.notes += [f"lost {identity}" for identity in missing[:5]] + [f"doubled {i}" for i in twice[:5]]
    found.order += sum(b < a for numbers in order.values() for a, b in pairwise(numbers))


def _failed(output: dict[str, Any], found: Findings) -> None:
    found.errors += 1
    if found.errors <= 5:
        found.notes.append(f"{output['user_id']} was told: {output['content'][:200]}")


def _plain(load: Load, said: list[dict[str, Any]], found: Findings) -> None:
    """Plain PUBLISH has no id: its text is counted. One whose reply was lost may have been heard or not."""
    wanted, got = load.counted(load.published), Counter[tuple[str, str]]()
    unsure, failed = load.counted(load.unsure), Counter[str]()
    order: dict[str, list[int]] = defaultdict(list)
    for output in said:
        user = str(output["user_id"])
        if user not in load.published and user not in load.unsure:
            continue
        match = _ANSWER.fullmatch(output["content"])
        if match is None:
            failed[user] += 1
            _failed(output, found)
            continue
        got[user, match[1]] += 1
        if match[1].startswith("plain "):
            order[user].append(int(match[1].rpartition(" ")[2]))
    found.answered += sum(got.values()) + failed.total()
    lost, doubled = Counter[str](), got - wanted - unsure
    for (user, _), count in (missing := wanted - got).items():
        lost[user] += count
    found.notes += [f"not taken in: {text!r} of {user}" for user, text in list(missing)[:5]]
    found.missed += (lost - failed).total()  # which of them was closed by an error does not stand in it
    found.doubled += doubled.total()
    found.notes += [f"doubled {key}" for key in list(doubled)[:5]]
    found.swapped += sum(b < a for numbers in order.values() for a, b in pairwise(numbers))


async def _seen(person: Person, said: list[dict[str, Any]], found: Findings) -> None:
    """What was said arrives at the person's gateway, a moment later at the latest."""
    told = {str(output["id"]) for output in said}

    async def all_of_it() -> bool:
        return told <= person.heard

    await happens(all_of_it, 5)
    found.unseen = len(told - person.heard)


def _stored(cluster: Cluster, loads: tuple[Load, ...], found: Findings) -> None:
    """Conversations without gaps, each message there, each consult asked once."""
    found.gaps = len(cluster.site.query(_GAPS))
    found.asked_twice = sum(row["more"] for row in cluster.site.query(_TWICE))
    for load in loads:
        rows = cluster.site.query(
            "select message_id from messages where user_id like ? and to_agent = 'chatter'", f"{load.tag}-%"
        )
        found.unstored += len(load.acknowledged.keys() - {row["message_id"] for row in rows})
