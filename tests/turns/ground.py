"""Short ways to use a queue, and to see what lies in Redis for it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from shared.bus.base import Argument, Bus, Script
from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT
from shared.errors import BusUnreachable
from shared.turns.queue import Claim, Completion, Mail, Place, Queue
from tests.bus.fake import FakeBus


class Lossy(FakeBus):
    """A bus that loses replies: `lose` names scripts whose next reply does not come, though they ran."""

    def __init__(self, below: Bus) -> None:
        super().__init__()
        self.below = below
        self.lose: list[str] = []
        self.ran: list[str] = []

    async def script(self, script: Script, key: str, *arguments: Argument) -> Any:
        reply = await self.below.script(script, key, *arguments)
        self.ran.append(script.name)
        if script.name in self.lose:
            self.lose.remove(script.name)
            raise BusUnreachable("the reply was lost")
        return reply

    async def command(self, *arguments: Argument, key: str | None = None) -> Any:
        return await self.below.command(*arguments, key=key)


def losses(queue: Queue) -> Lossy:
    """The bus of `lossy`."""
    assert isinstance(queue.bus, Lossy)
    return queue.bus


def mail(id: str, session: str = "s", place: Place = "mail", **more: Any) -> Mail:
    """A message of a person as it is posted."""
    data = json.dumps({"user_id": "ann", "content": id, "id": id}).encode()
    return Mail(id, session, more.pop("channel", HUMAN_INPUT), more.pop("data", data), place, **more)


async def claimed(queue: Queue, worker: str = "w1") -> Claim:
    """The next turn, which must be there."""
    claim = await queue.claim(worker)
    assert isinstance(claim, Claim), f"nothing is due: {claim}"
    return claim


def given(claim: Claim) -> list[str]:
    """The ids of the messages that a claimed turn answers."""
    return [entry.id for entry in claim.entries]


def closing(text: str = "done", **more: Any) -> Completion:
    """How a turn ends, with an output."""
    return Completion(channel=CHATTER_OUTPUT, output=text, **more)


@dataclass
class State:
    """What lies in Redis for one queue."""

    inbox: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    dead: list[tuple[str, str]] = field(default_factory=list)
    archived: list[str] = field(default_factory=list)


async def state(queue: Queue) -> State:
    """The ids that wait, the outputs, the dead letters with their reasons, the kinds in the archive."""
    streams = {}
    for name in ("inbox", "out", "dead", "archive"):
        entries = await queue.bus.command("XRANGE", f"{queue.prefix}{name}", "-", "+")
        streams[name] = [dict(zip(flat[::2], flat[1::2], strict=True)) for _, flat in entries]
    return State(
        [entry[b"id"].decode() for entry in streams["inbox"]],
        [entry[b"data"].decode() for entry in streams["out"]],
        [(entry[b"id"].decode(), entry[b"reason"].decode()) for entry in streams["dead"]],
        [entry[b"kind"].decode() for entry in streams["archive"]],
    )


async def lapse(queue: Queue, session: str = "s") -> None:
    """Let the lease of a turn run out."""
    await queue.bus.command("ZADD", f"{queue.prefix}due", 1, session)


async def stale(queue: Queue) -> int:
    """How many commits of workers without a lease were refused."""
    return int(await queue.bus.command("GET", f"{queue.prefix}stale") or 0)
