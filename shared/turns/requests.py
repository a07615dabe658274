"""Requests into an agent's queue: another's, signed and bounded, refused in words where it is full; and one's own."""

from __future__ import annotations

from typing import Any

from shared.bus import messages, reading
from shared.bus.signing import Signer
from shared.errors import Busy, PromptDockError
from shared.turns.queue import Mail, Queue


async def send(
    queue: Queue, signer: Signer, request: messages.AgentMessage, deadline: int, patience: float
) -> int:
    """Deliver it; how many wait before it. Sent again under the same id, it is the same request."""
    channel = queue.names.agent(queue.agent)
    sig = signer.sign(channel, request.fields())
    data = request.model_copy(update={"sig": sig, "via": channel}).to_bytes()
    if len(data) > reading.MAX_BYTES:
        raise PromptDockError(
            f"the request to {queue.agent} is too large",
            f"{len(data)} bytes, of at most {reading.MAX_BYTES}",
            "shorten it",
        )
    mail = Mail(request.id, request.id, channel, data, deadline=deadline)
    receipt = await queue.post(mail, patience=patience)
    if receipt.outcome == "busy":
        raise Busy(
            f"{queue.agent} takes nothing more now",
            f"{receipt.waiting} requests wait for it",
            "try again later",
        )
    return receipt.waiting


async def to_itself(queue: Queue, id: str, session: str, payload: dict[str, Any]) -> None:
    """Have an agent do something in a session by itself; asked again under the same id, it is done once."""
    agent = queue.agent
    channel = queue.names.agent(agent)
    message = messages.AgentMessage.outgoing(id, agent, agent, "command", payload, via=channel)
    await queue.post(Mail(id, session, channel, message.to_bytes()))
