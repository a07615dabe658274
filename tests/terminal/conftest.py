"""A conversation on a real server, with a screen that is only remembered and a Chatter that the test plays."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gateways.terminal.conversation import Conversation
from gateways.terminal.screen import options, words
from shared.bus import signing
from shared.bus.keys import Names
from shared.bus.messages import Output
from shared.bus.redis import RedisBus
from shared.bus.signing import Signer
from shared.client import Client
from shared.client.text.blocks import TextBlock
from shared.settings import Settings
from tests.support.valkey import names, redis, until, valkey

__all__ = ["names", "redis", "valkey"]


@dataclass
class Seen:
    """A screen that remembers `(kind, text)`."""

    told: list[tuple[str, str]] = field(default_factory=list)
    streams: bool = True

    def write(self, written: Sequence[TextBlock], demo: bool) -> None:
        self.told += [("written", block.text) for block in written]

    def options(self, output: Output) -> None:
        if output.options:
            self.told.append(("options", options(output)))

    def answer(self, output: Output) -> None:
        self.told.append((output.status, f"{words(output)}\n{options(output)}"))

    def note(self, text: str) -> None:
        self.told.append(("note", text))

    def block(self, text: str) -> None:
        self.told.append(("block", text))

    def error(self, text: str) -> None:
        self.told.append(("error", text))

    def person(self, text: str) -> None:
        self.told.append(("person", text))

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.told]

    def last(self, kind: str) -> str:
        """The newest text of a kind."""
        return next((text for known, text in reversed(self.told) if known == kind), "")


@dataclass
class Chatter:
    """What a Chatter of somebody else's says and hears, who has the cluster's secret."""

    redis: RedisBus
    names: Names
    seen: Seen
    signer: Signer

    async def says(self, status: str, content: str, **fields: Any) -> None:
        """Say it; comes back when it is on the screen."""
        before = len(self.seen.told)
        words = {"user_id": "ada", "content": content, "status": status, "session_id": "user:ada", **fields}
        channel = self.names.channel("chatter-output")
        words = {"id": str(uuid4()), **words}
        words |= {"sig": self.signer.sign(channel, words)}
        await self.redis.publish(channel, json.dumps(words).encode())
        await until(lambda: len(self.seen.told) > before)

    async def heard(self) -> list[dict[str, Any]]:
        """The messages that were posted to Chatter, in order."""
        entries = await self.redis.command("XRANGE", f"{self.names.queue('chatter')}inbox", "-", "+")
        posts = [dict(zip(flat[::2], flat[1::2], strict=True)) for _, flat in entries]
        return [json.loads(post[b"data"]) for post in posts]


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def chatter(redis: RedisBus, names: Names, seen: Seen, tmp_path: Path) -> Chatter:
    return Chatter(redis, names, seen, signing.of_home(Settings(PROMPTDOCK_HOME=tmp_path)))


@pytest.fixture
async def here(valkey: str, names: Names, seen: Seen, tmp_path: Path) -> AsyncIterator[Conversation]:
    settings = Settings(REDIS_URL=valkey, PROMPTDOCK_HOME=tmp_path, PROMPTDOCK_NAMESPACE=names.namespace)
    async with Client(settings) as client, Conversation(client, seen, "ada", None) as made:
        yield made
