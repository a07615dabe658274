"""What people send while things break: own posts and plain PUBLISH, some identical, amends and stops."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from shared.bus import messages
from shared.bus.keys import HUMAN_INPUT
from shared.errors import PromptDockError
from shared.turns import routing
from tests.faults.cluster import Cluster

BACKLOG = 100  # unanswered messages of all people together at which they pause
_numbers = itertools.count(1)


@dataclass
class Load:
    """So many people, each in a session of its own; `run` sends everything, one message after the other.

    Each sends `each` messages, and goes on as long as `on` is set.

    `kinds` are what an own message may be (model.py), and `amend` or `stop`, which concern what runs.
    """

    cluster: Cluster
    own: int = 4
    plain: int = 4
    each: int = 12
    pause: float = 0.06  # seconds between the messages of one person, at most
    kinds: tuple[str, ...] = ("say", "say", "say", "ask", "say", "amend", "say")
    tag: str = field(default_factory=lambda: f"l{next(_numbers)}")
    acknowledged: dict[str, str] = field(default_factory=dict)  # message id -> user
    words: dict[str, str] = field(default_factory=dict)  # message id -> what was said
    published: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # user -> texts
    unsure: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # PUBLISH not answered
    unheard: int = 0  # PUBLISH that nobody heard, or that was not answered
    refused: int = 0  # answers `busy`, sent again later
    unasked: int = 0  # posts whose acknowledgement was lost, sent again with the same id
    dice: random.Random = field(default_factory=lambda: random.Random(7))

    def __post_init__(self) -> None:
        self.may_publish = asyncio.Event()
        self.may_publish.set()
        self.done = asyncio.Event()
        self.on = asyncio.Event()
        self._waiting = 0

    async def run(self) -> None:
        """Send everything."""
        own = [self._own(f"{self.tag}-o{n}") for n in range(self.own)]
        plain = [self._plain(f"{self.tag}-p{n}") for n in range(self.plain)]
        watch = asyncio.create_task(self._watch())
        try:
            await asyncio.gather(*own, *plain)
        finally:
            watch.cancel()
        self.done.set()

    async def _watch(self) -> None:
        """How much waits for an answer: people do not talk on for ever when nobody answers."""
        while True:
            with contextlib.suppress(PromptDockError):
                self._waiting = await self.cluster.queues["chatter"].size()
            await asyncio.sleep(0.1)

    async def _own(self, user: str) -> None:
        for number in itertools.count():
            if number >= self.each and not self.on.is_set():
                return
            kind = self.kinds[number % len(self.kinds)]
            await self.send(user, kind, number)
            await self._breathe(number)

    async def send(self, user: str, kind: str, number: int, **fields: Any) -> str:
        """Post one message until it is acknowledged; its id."""
        identity, text = str(fields.get("id", f"{user}-{number}")), f"{kind} {user} {number}"
        content: dict[str, Any] = {"user_id": user, "id": identity, "session_id": f"s:{user}", **fields}
        if kind in ("amend", "stop"):
            content["type"] = kind
        if kind != "stop":
            content["content"] = text
        channel = self.cluster.names.channel(HUMAN_INPUT)
        data = json.dumps({**content, "via": channel}).encode()
        mail = routing.human(self.cluster.names, messages.human(content), data)
        queue = self.cluster.queues["chatter"]
        while True:
            try:
                receipt = await queue.post(mail)
            except PromptDockError:
                self.unasked += 1
                await asyncio.sleep(0.05)
                continue
            if receipt.outcome != "busy":
                break
            self.refused += 1
            await asyncio.sleep(0.1)
        self.acknowledged[identity] = user
        self.words[identity] = text
        return identity

    async def _plain(self, user: str) -> None:
        for number in itertools.count():
            if number >= self.each and not self.on.is_set():
                return
            await self.may_publish.wait()
            text = "yes" if self.dice.random() < 0.4 else f"plain {user} {number}"
            data = json.dumps({"user_id": user, "content": text})
            try:
                heard = await self.cluster.bus.publish(self.cluster.names.channel(HUMAN_INPUT), data)
            except PromptDockError:
                heard = 0
                self.unsure[user].append(text)
            if heard:
                self.published[user].append(text)
            else:
                self.unheard += 1
            await self._breathe(number)

    async def _breathe(self, number: int) -> None:
        """Who has said all that must be said goes on more slowly, so that the others keep up."""
        await asyncio.sleep(self.dice.random() * self.pause * (1 if number < self.each else 10))
        while self._waiting > BACKLOG:
            await asyncio.sleep(0.05)

    @property
    def sent(self) -> int:
        """How many messages must be answered."""
        return len(self.acknowledged) + sum(map(len, self.published.values()))

    @staticmethod
    def counted(messages: dict[str, list[str]]) -> Counter[tuple[str, str]]:
        """Plain messages, as (user, text)."""
        return Counter((user, text) for user, texts in messages.items() for text in texts)
