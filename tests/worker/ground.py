"""A worker's connection to a bus in this process, and turns claimed there: what runners need, without a worker."""

from __future__ import annotations

import json
from typing import Any

from shared.bus import messages
from shared.bus.keys import Names
from shared.bus.signing import Signer
from shared.turns.queue import Claim, Mail
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from tests.bus.fake import FakeBus


def connected(lease_ms: int = 60_000) -> Connection:
    """To a cluster of its own."""
    return Connection(FakeBus(), Names("unit"), Signer("x" * 64), lease_ms)


def request(**more: Any) -> messages.AgentMessage:
    """A question of Chatter to Backend."""
    question = {
        "id": "q1",
        "from": "chatter",
        "to": "backend",
        "type": "question",
        "payload": {"question": "?"},
    }
    return messages.agent({**question, **more})


async def turn_of(connection: Connection, agent: str, id: str = "q1", session: str = "s") -> Turn:
    """A turn of this agent that was opened by a message `id`."""
    queue = connection.queue(agent)
    channel = connection.names.agent(agent)
    await queue.post(Mail(id, session, channel, json.dumps({"id": id}).encode()))
    claim = await queue.claim("w1")
    assert isinstance(claim, Claim), f"nothing is due: {claim}"
    return Turn(queue, claim)


async def heard(connection: Connection, agent: str) -> list[dict[str, Any]]:
    """The messages that this agent's workers only published, as they are on their way to the Store."""
    entries = await connection.bus.command("XRANGE", connection.names.keys(agent).outbox, "-", "+")
    fields = [dict(zip(flat[::2], flat[1::2], strict=True)) for _, flat in entries]
    return [json.loads(one[b"data"]) for one in fields if one.get(b"kind") == b"message"]
