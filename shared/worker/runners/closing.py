"""Answering a request: journal the answer, deliver it in the asker's slot, then close one's own turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from shared import log
from shared.bus.keys import BROADCAST, CHATTER_OUTPUT, HUMAN_INPUT, STATUS
from shared.bus.messages import MAX_BYTES, AgentMessage
from shared.redaction import concealed
from shared.store.records import Row
from shared.store.row import derived
from shared.turns import outbox
from shared.turns.queue import Completion
from shared.turns.turn import Turn
from shared.worker.resources import Resources
from shared.worker.runners.history import turn_rows

_TOO_LARGE = "the answer was too large to send whole"


def _allowed(parts: Resources, request: AgentMessage) -> str:
    """Where the answer goes: `agent:<from>`, or the request's own channel if it is one for answers."""
    own = parts.names.agent(request.sender)
    named = request.reply_channel
    if not named or named == own:
        return own
    bare = parts.names.bare(named)
    refused = bare in (HUMAN_INPUT, CHATTER_OUTPUT, STATUS, BROADCAST) or bare.startswith(
        ("agent:", "home:", "events:", "pd:", "__")
    )
    if refused:
        log.get().warning("A reply channel was refused", reply_channel=named, sender=request.sender)
        return own
    return named


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


async def deliver(
    parts: Resources,
    agent: str,
    request: AgentMessage,
    kind: Literal["response", "error"],
    payload: dict[str, Any],
) -> None:
    """To the asker's desk if one waits there, else (a foreign program) by plain PUBLISH."""
    channel = _allowed(parts, request)
    own = parts.names.agent(request.sender)
    if channel == own:
        data = envelope(agent, request, kind, payload, own)
        if await parts.desk(request.sender).respond(request.id, own, data) != "unasked":
            return
    data = envelope(agent, request, kind, payload, channel)
    await parts.bus.publish(channel, data)
    await _log(parts, agent, request, channel, data)


async def progress(parts: Resources, agent: str, request: AgentMessage, text: str) -> None:
    """Say what goes on; nobody keeps it."""
    channel = parts.names.agent(request.sender)
    data = envelope(agent, request, "progress", {"message": text}, channel)
    await parts.bus.publish(channel, data)
    await _log(parts, agent, request, channel, data)


async def _log(parts: Resources, agent: str, request: AgentMessage, channel: str, data: bytes) -> None:
    """On its way to the Store: what is only published passes no script that would note it."""
    key = parts.names.keys(agent).outbox
    fields = ("kind", "message", "channel", channel, "session", request.id, "id", request.id, "data", data)
    await parts.bus.command("XADD", key, "*", *fields)


async def close(
    parts: Resources,
    agent: str,
    turn: Turn,
    state: str,
    error: str | None = None,
    dead: str = "",
    more: Sequence[Row | outbox.RowChange] = (),
) -> None:
    """Close the turn of a request, whose answer is delivered already; `more` goes to the Store with it."""
    await parts.approvals.withdraw(turn)
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
        provider=parts.model.name,
        task_id=turn.task_id,
        project_id=turn.project_id,
    )
    await turn.finish(Completion(rows=outbox.pack([*rows, *more]), dead=dead))
