"""What must hold whatever broke, checked over everything that was sent, said, stored and bought."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from shared.bus.messages import CLOSING
from shared.store.records import ConversationMessage, Message
from shared.store.sqlite import SqliteStore
from tests.faults.cluster import Cluster
from tests.faults.workload import Load

_ANSWER = re.compile(r"re: (.*?)(?: #(\d+))?", re.DOTALL)
_BROKEN = ("lost", "doubled", "order", "rebought", "asked_twice", "gaps", "left", "effects")


@dataclass
class Findings:
    """The figures of one row. Those in `broken` must be zero."""

    row: str = ""
    sent: int = 0
    answered: int = 0
    errors: int = 0  # messages that were closed by an error, which the row may expect
    lost: int = 0  # acknowledged or heard, and never closed
    doubled: int = 0  # closed more than once
    order: int = 0  # closed before one that was sent earlier by the same person
    rebought: int = 0  # model answers bought again although they were stored
    in_flight: int = 0  # model answers bought again because their first buyer died with them
    asked_twice: int = 0  # consults that were asked more than once
    gaps: int = 0  # conversations in the Store with a number missing or double
    left: int = 0  # keys that should be gone
    effects: int = 0  # tool effects missing or repeated
    stale: int = 0  # late commits that were refused
    faults: int = 0
    unheard: int = 0
    recoveries: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def broken(self) -> dict[str, int]:
        """The promises that did not hold."""
        return {name: getattr(self, name) for name in _BROKEN if getattr(self, name)}

    def quantile(self, share: float) -> float:
        """Seconds until this share of what a fault interrupted had another owner; 0 where nothing was."""
        if len(self.recoveries) < 2:
            return max(self.recoveries, default=0.0)
        return statistics.quantiles(self.recoveries, n=100, method="inclusive")[round(share * 100) - 1]

    def line(self) -> str:
        """The figures, in one line."""
        told = {name: getattr(self, name) for name in ("faults", "sent", "answered", "errors", *_BROKEN)}
        told |= {"in_flight": self.in_flight, "stale": self.stale}
        figures = " ".join(f"{name}={value}" for name, value in told.items())
        return f"{self.row:28s} {figures} p50={self.quantile(0.5):.2f}s p99={self.quantile(0.99):.2f}s"


@dataclass(frozen=True)
class Mark:
    """What had been counted when a row began."""

    rebought: int
    in_flight: int
    stale: int
    recoveries: int

    @classmethod
    async def now(cls, cluster: Cluster) -> Mark:
        """The counts of this moment."""
        model = cluster.model
        return cls(model.backward(), model.again(), await cluster.stale(), len(cluster.recoveries))


async def check(cluster: Cluster, since: Mark, *loads: Load, row: str, patience: float = 40.0) -> Findings:
    """Wait until nothing is left to do, then look at everything that came since a mark."""
    found = Findings(row)
    if not await cluster.quiet(patience):
        found.notes.append(f"not quiet after {patience:g} s")
    await cluster.recovered()
    said = await _said(cluster)
    for load in loads:
        mine = [output for output in said if str(output["user_id"]).startswith(f"{load.tag}-")]
        _own(load, mine, found)
        _plain(load, mine, found)
        found.sent += load.sent
        found.unheard += load.unheard
    found.rebought = cluster.model.backward() - since.rebought
    found.in_flight = cluster.model.again() - since.in_flight
    leftovers = await cluster.leftovers()
    found.left = len(leftovers)
    found.notes += leftovers[:5]
    found.stale = await cluster.stale() - since.stale
    found.recoveries = cluster.recoveries[since.recoveries :]
    await _stored(cluster, found)
    return found


async def _said(cluster: Cluster) -> list[dict[str, Any]]:
    """Every closing output, in order."""
    out, after = [], "-"
    while entries := await cluster.bus.command(
        "XRANGE", f"{cluster.desks['chatter'].prefix}out", after, "+", "COUNT", 1000
    ):
        out += [json.loads(fields[1]) for _, fields in entries]
        after = "(" + entries[-1][0].decode()
    return [output for output in out if output["status"] in CLOSING]


def _own(load: Load, said: list[dict[str, Any]], found: Findings) -> None:
    closed: Counter[str] = Counter()
    order: dict[str, list[int]] = defaultdict(list)
    for output in said:
        for identity in output.get("answers", []):
            if identity not in load.acknowledged:
                continue
            closed[identity] += 1
            found.errors += output["status"] == "error"
            if load.words[identity].split(" ", 1)[0] not in ("amend", "stop"):
                order[load.acknowledged[identity]].append(int(identity.rpartition("-")[2]))
    missing = [identity for identity in load.acknowledged if not closed[identity]]
    twice = [identity for identity, count in closed.items() if count > 1]
    found.answered += len(closed)
    found.lost += len(missing)
    found.doubled += sum(closed[identity] - 1 for identity in twice)
    found.notes += [f"lost {identity}" for identity in missing[:5]] + [f"doubled {i}" for i in twice[:5]]
    found.order += sum(b < a for numbers in order.values() for a, b in pairwise(numbers))


def _plain(load: Load, said: list[dict[str, Any]], found: Findings) -> None:
    wanted, got = load.counted(), Counter[tuple[str, str]]()
    order: dict[str, list[int]] = defaultdict(list)
    for output in said:
        user = str(output["user_id"])
        if user not in load.published:
            continue
        match = _ANSWER.fullmatch(output["content"])
        if match is None:
            found.notes.append(f"{user}: {output['content'][:80]}")
            continue
        got[user, match[1]] += 1
        if match[1].startswith("plain "):
            order[user].append(int(match[1].rpartition(" ")[2]))
    found.answered += sum(got.values())
    lost, doubled = wanted - got, got - wanted
    found.lost += lost.total()
    found.doubled += doubled.total()
    found.notes += [f"lost {key}" for key in list(lost)[:5]] + [f"doubled {key}" for key in list(doubled)[:5]]
    found.order += sum(b < a for numbers in order.values() for a, b in pairwise(numbers))


async def _stored(cluster: Cluster, found: Findings) -> None:
    """Conversations without gaps, and each consult asked once."""
    store = SqliteStore(cluster.site.home / "promptdock.db")
    await store.open()
    try:
        numbers: dict[str, list[int]] = defaultdict(list)
        for row in await store.select(ConversationMessage):
            numbers[row.session_id].append(row.seq)
        found.gaps = sum(sorted(seqs) != list(range(1, len(seqs) + 1)) for seqs in numbers.values())
        asked: dict[str, set[str]] = defaultdict(set)
        for message in await store.select(Message, {"type": "question"}):
            asked[str(message.payload.get("question"))].add(str(message.message_id))
        found.asked_twice = sum(len(ids) - 1 for ids in asked.values())
    finally:
        await store.close()
