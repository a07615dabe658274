"""What a finished turn leaves in the Store, as rows; their ids follow from the turn, so twice is once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from shared.conversation import sessions
from shared.loop.transcript import usage_of
from shared.store.records import (
    Audit,
    ConversationMessage,
    Row,
    TokenUsage,
    TurnRow,
    TurnStep,
    project_key,
)
from shared.store.row import derived
from shared.turns.records import Record


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def turn_rows(
    agent: str,
    turn_id: str,
    session: str,
    records: list[Record],
    *,
    state: str,
    epoch: int,
    tries: int,
    started_ms: int,
    ended_ms: int,
    user_id: str | None = None,
    error: str | None = None,
    provider: str = "",
    task_id: UUID | None = None,
    project_id: UUID | None = None,
    request_id: str | None = None,
) -> list[Row]:
    """The turn, its steps, and the usage of each model call; `project_id` is what the turn began in."""
    models = [record for record in records if record["k"] == "model"]
    rows: list[Row] = [
        TurnRow(
            id=derived("turn", agent, turn_id),
            turn_id=turn_id,
            agent=agent,
            session_id=session,
            request_id=request_id,
            user_id=user_id,
            task_id=task_id,
            state=state,
            epoch=epoch,
            tries=tries,
            model=models[-1]["model"] if models else None,
            error=error,
            started_at=_time(started_ms),
            ended_at=_time(ended_ms),
        )
    ]
    for number, record in enumerate(records, 1):
        if project_id and (slug := sessions.switched(record)):
            project_id = project_key(slug)
        at = int(record.get("at", started_ms))
        if record["k"] == "check":
            rows.append(_audit(agent, turn_id, session, record, task_id))
            continue
        rows.append(_step(agent, turn_id, session, number, record, at))
        if record["k"] == "model":
            usage = _usage(agent, turn_id, session, number, record, provider, task_id)
            rows.append(usage.model_copy(update={"project_id": project_id}))
    return rows


def ended_in(records: list[Record], project_id: UUID | None) -> UUID | None:
    """The project that a turn which began in that one worked on at its end."""
    for record in records:
        if project_id and (slug := sessions.switched(record)):
            project_id = project_key(slug)
    return project_id


def _step(agent: str, turn_id: str, session: str, number: int, record: Record, at: int) -> Row:
    return TurnStep(
        id=derived("step", agent, turn_id, number),
        turn_id=turn_id,
        session_id=session,
        agent=agent,
        number=number,
        kind=record["k"],
        description=_described(record),
        detail=_detail(record),
        is_error=bool(record.get("error")),
        started_at=_time(at - int(record.get("ms", 0))),
        ended_at=_time(at),
        ms=record.get("ms"),
    )


def _audit(agent: str, turn_id: str, session: str, record: Record, task_id: UUID | None) -> Row:
    """What was decided about one call."""
    return Audit(
        id=derived("audit", agent, record["call"]),
        created_at=_time(int(record["at"])),
        agent=agent,
        action=record["action"],
        decision=record["decision"],
        person=record["person"] or None,
        profile=record["profile"] or None,
        session_id=session,
        turn_id=turn_id,
        task_id=task_id,
        detail=record["detail"],
    )


def _described(record: Record) -> str:
    if record["k"] == "model":
        calls = [block["name"] for block in record["content"] if block.get("type") == "tool_use"]
        return f"model asked for {', '.join(calls)}" if calls else "model answered"
    if record["k"] == "result":
        return f"{record['tool']} {'failed' if record['error'] else 'done'}"
    if record["k"] == "ask":
        return f"asked for permission: {record['card']['action']}"[:200]
    if record["k"] == "decided":
        return f"permission: {record['how']} {record['by']}".strip()[:200]
    return str(record.get("text", record["k"]))[:200]


def _detail(record: Record) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("k", "at", "ms", "error")}


def _usage(
    agent: str, turn_id: str, session: str, number: int, record: Record, provider: str, task_id: UUID | None
) -> Row:
    usage = usage_of(record)
    return TokenUsage(
        id=derived("usage", agent, turn_id, number),
        created_at=_time(int(record["at"])),
        agent=agent,
        session_id=session,
        turn_id=turn_id,
        task_id=task_id,
        provider=provider,
        model=record["model"] or "unknown",
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        cost=usage.cost,
        demo=bool(record["demo"]),
    )


def conversation_rows(session: str, turn_id: str, window: list[Record]) -> list[Row]:
    """The conversation's messages that a turn added, numbered without a gap."""
    return [
        ConversationMessage(
            id=derived("conversation", session, turn_id, index),
            created_at=_time(int(record["at"])),
            session_id=session,
            seq=record["seq"],
            turn_id=turn_id,
            role=record["role"],
            content=record["content"],
            tool_calls=[block for block in record["content"] if block.get("type") == "tool_use"],
            user_id=record.get("user_id"),
            user_name=record.get("user_name"),
            source=record.get("source"),
            source_message_id=record.get("message_id"),
        )
        for index, record in enumerate(window)
    ]
