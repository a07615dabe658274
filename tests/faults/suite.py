"""The rows: which fault, what it proves, on what cluster, and how large it is in the short and the long run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults import rows, stores


@dataclass(frozen=True)
class Row:
    """One row. `long` is how often it hurts in the long run, `share` its part of the messages there."""

    hurt: rows.Hurt
    fault: str
    promises: tuple[int, ...]
    short: int = 1
    long: int = 100
    share: float = 1.0
    load: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.hurt.__name__


# On three Chatters and a Planner, each Chatter and the person behind a proxy of its own.
OPEN = (
    Row(rows.kill_one, "kill -9 of a Chatter, at a random moment", (1, 2, 3, 4, 7), long=300),
    Row(rows.kill_two, "kill -9 of two of three Chatters at once", (1, 2, 4), long=100),
    Row(rows.kill_planner, "kill -9 of the agent that is consulted", (1, 2, 7), long=100),
    Row(rows.freeze, "SIGSTOP of a Chatter beyond its lease, then SIGCONT", (2, 4, 5), long=1000),
    Row(rows.roll, "rolling replacement: one more comes, an old one gets SIGTERM", (1, 2, 10), long=100),
    Row(rows.half_open, "connections that carry nothing any more, and nobody is told", (1, 2, 8), long=100),
    Row(rows.partition, "a Chatter cut off from Redis beyond its lease", (1, 2, 5, 8), long=100),
    Row(rows.cut, "connections cut, refused for a moment, late afterwards", (1, 2, 8), long=200),
    Row(rows.kill_redis, "kill -9 of Redis, and its restart", (1, 2, 8, 12), long=50),
    Row(rows.read_only, "Redis becomes read-only, as in a failover", (1, 2, 8), long=100),
    Row(rows.deaf, "Redis cuts every subscriber, as one that is too slow", (1, 2, 8), long=100),
    Row(rows.full, "Redis has no memory left", (1, 3, 11), long=100),
    Row(rows.outbox, "people talk to a gateway while Redis is dead", (1, 2, 3), long=30),
    Row(
        rows.provider, "the provider answers 429 or 529, cuts, stalls or ends its stream", (3, 7, 14), long=1
    ),
    Row(stores.store, "the Store is locked", (1, 2, 12), long=50),
    Row(
        stores.store_full,
        "the Store's disk is full: nothing can be written, logs included",
        (1, 2, 12),
        long=50,
    ),
    Row(rows.pair, "two faults at once, drawn anew each time", (1, 2, 5, 8), long=200),
)
# On workers that die at named points, for messages of these names.
_POINTS = len(rows.POINTS) + len(rows.ASKED)
DYING = (
    Row(
        rows.points,
        "a worker dies at each named point of a turn",
        (1, 2, 6, 7),
        short=_POINTS,
        long=_POINTS,
        # One after the other: a death of the turn beside it would carry a turn over its own point. Behind
        # the last death one more message, which is answered when whoever died there is back.
        load={"own": 1, "plain": 0, "each": _POINTS + 1, "kinds": ("ask",), "tag": "pt"},
    ),
    Row(
        rows.results,
        "a worker dies between a tool's result and the next model call",
        (2, 6, 7),
        short=4,
        long=50,
        load={"own": 1, "plain": 0, "kinds": ("look", "ask"), "tag": "rs"},
    ),
    Row(
        rows.asleep,
        "a worker freezes with a claim unread, or about to ask the model, and wakes up beyond its lease",
        (2, 5, 7),
        short=4,
        long=20,
        load={"own": 1, "plain": 0, "kinds": ("look",), "tag": "sl"},
    ),
    Row(
        rows.poison,
        "a message that kills whoever claims it",
        (3, 9),
        long=5,
        load={"own": 2, "plain": 2, "each": 3, "tag": "po"},
    ),
)


def dying(folder: Path, long: bool = False) -> dict[str, Any]:
    """The environment of these workers: each dies or freezes there once, but of poison always."""
    folder.mkdir(parents=True, exist_ok=True)
    times = {row.name: row.long if long else row.short for row in DYING}
    deaths = [
        *(f"{point}@pt-o0-{n}" for n, point in enumerate(rows.POINTS)),
        *(f"{point}@pt-o0-{n}.1.1" for n, point in enumerate(rows.ASKED, len(rows.POINTS))),
        *(f"result stored@rs-o0-{n}" for n in range(times["results"])),
        *(f"~{rows.SLEEPS[n % 2]}@sl-o0-{n}" for n in range(times["asleep"])),
        *(f"!claimed@{rows.POISON}-{n}" for n in range(times["poison"])),
    ]
    return {"PROMPTDOCK_FAULT": ",".join(deaths), "PROMPTDOCK_FAULT_ONCE": str(folder)}


def died(folder: Path, tag: str) -> int:
    """How many deaths or freezes there were of messages with this tag."""
    return sum(f"@{tag}-" in file.name for file in folder.iterdir())
