"""Answering a request: journal the answer, deliver it in the asker's slot, then close one's own turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from shared import log
from shared.bus.keys import BROADCAST, CHATTER_OUTPUT, HUMAN_INPUT, STATUS
from shared.bus.messages import AgentMessage
from shared.bus.reading import MAX_BYTES
from shared.redaction import concealed
from shared.store.records import Row
from shared.store.row import derived
from shared.turns import outbox
from shared.turns.queue import Completion
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.permissions.service import ApprovalService
from shared.worker.runners.history import turn_rows

_TOO_LARGE = "the answer was too large to send whole"


def envelope(
    agent: str,
    request: AgentMessage,
    kind: Literal["response", "error", "progress"],
    payload: dict[str, Any],
    via: str,
) -> bytes:
    """An answer as it is sent; one that is too large says so instead of being lost."""
    payload = concealed(payload)
    id = str(derived("answer", agent, request.id, kind))
    answer = AgentMessage.outgoing(
        *(id, agent, request.sender, kind, {"request_id": request.id, **payload}), via=via
    )
    data = answer.to_bytes()
    if len(data) > MAX_BYTES:
        slim = {key: value for key, value in payload.items() if len(str(value)) < 8192}
        slim = {"request_id": request.id, **slim, "warning": _TOO_LARGE}
        data = answer.model_copy(update={"payload": slim}).to_bytes()
    return data


class Replies:
    """What one agent says to those who ask it."""

    def __init__(self, connection: Connection, agent: str) -> None:
        self.connection, self.agent = connection, agent

    async def deliver(
        self, request: AgentMessage, kind: Literal["response", "error"], payload: dict[str, Any]
    ) -> None:
        """To the asker's queue if it waits there, else (a foreign program) by plain PUBLISH."""
        channel = self._channel(request)
        own = self.connection.names.agent(request.sender)
        if channel == own:
            data = envelope(self.agent, request, kind, payload, own)
            if await self.connection.queue(request.sender).respond(request.id, own, data) != "unasked":
                return
        data = envelope(self.agent, request, kind, payload, channel)
        await self.connection.bus.publish(channel, data)
        await self._log(request, channel, data)

    async def progress(self, request: AgentMessage, text: str) -> None:
        """Say what goes on; nobody keeps it."""
        channel = self.connection.names.agent(request.sender)
        data = envelope(self.agent, request, "progress", {"message": text}, channel)
        await self.connection.bus.publish(channel, data)
        await self._log(request, channel, data)

    def _channel(self, request: AgentMessage) -> str:
        """Where the answer goes: `agent:<from>`, or the request's own channel if it is one for answers."""
        names = self.connection.names
        own = names.agent(request.sender)
        named = request.reply_channel
        if not named or named == own:
            return own
        bare = names.bare(named)
        refused = bare in (HUMAN_INPUT, CHATTER_OUTPUT, STATUS, BROADCAST) or bare.startswith(
            ("agent:", "home:", "events:", "pd:", "__")
        )
        if refused:
            log.get().warning("A reply channel was refused", reply_channel=named, sender=request.sender)
            return own
        return named

    async def _log(self, request: AgentMessage, channel: str, data: bytes) -> None:
        """On its way to the Store: what is only published passes no script that would note it."""
        key = self.connection.names.keys(self.agent).outbox
        fields = (
            "kind",
            "message",
            "channel",
            channel,
            "session",
            request.id,
            "id",
            request.id,
            "data",
            data,
        )
        await self.connection.bus.command("XADD", key, "*", *fields)


async def close(
    approvals: ApprovalService | None,
    provider: str,
    agent: str,
    turn: Turn,
    state: str,
    error: str | None = None,
    dead: str = "",
    more: Sequence[Row | outbox.RowChange] = (),
) -> None:
    """Close the turn of a request, whose answer is delivered already; `more` goes to the Store with it.

    What people are still asked is taken back; no `approvals` where nobody could be asked.
    """
    if approvals is not None:
        await approvals.withdraw(turn)
    rows = turn_rows(
        agent,
        turn.id,
        turn.session,
        turn.records,
        state=state,
        epoch=turn.epoch,
        tries=turn.tries,
        started_ms=turn.claimed_at,
        ended_ms=turn.claimed_at + turn.elapsed_ms(),
        request_id=turn.id,
        error=error,
        provider=provider,
        task_id=turn.task_id,
        project_id=turn.project_id,
    )
    await turn.finish(Completion(rows=outbox.pack([*rows, *more]), dead=dead))
