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
from shared.turns.records import (
    AskRecord,
    BoughtRecord,
    CheckRecord,
    DecidedRecord,
    JournalRecord,
    ModelRecord,
    PlanRecord,
    PricedRecord,
    Record,
    Records,
    ResultRecord,
    StepRecord,
)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def turn_rows(
    agent: str,
    turn_id: str,
    session: str,
    records: Records,
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
    newest = records.last(ModelRecord)
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
            model=newest.model if newest else None,
            error=error,
            started_at=_time(started_ms),
            ended_at=_time(ended_ms),
        )
    ]
    for number, record in enumerate(records, 1):
        if project_id and (slug := sessions.switched(record)):
            project_id = project_key(slug)
        at = record.when or started_ms
        if isinstance(record, CheckRecord):
            rows.append(_audit(agent, turn_id, session, record, task_id))
            continue
        rows.append(_step(agent, turn_id, session, number, record, at))
        if isinstance(record, PricedRecord):
            usage = _usage(agent, turn_id, session, number, record, provider, task_id)
            rows.append(usage.model_copy(update={"project_id": project_id}))
    return rows


def ended_in(records: Records, project_id: UUID | None) -> UUID | None:
    """The project that a turn which began in that one worked on at its end."""
    for record in records:
        if project_id and (slug := sessions.switched(record)):
            project_id = project_key(slug)
    return project_id


def _step(agent: str, turn_id: str, session: str, number: int, record: JournalRecord, at: int) -> Row:
    ms = record.ms if isinstance(record, ModelRecord | ResultRecord) else None
    return TurnStep(
        id=derived("step", agent, turn_id, number),
        turn_id=turn_id,
        session_id=session,
        agent=agent,
        number=number,
        kind=record.k,
        description=_described(record),
        detail=_detail(record),
        is_error=isinstance(record, ResultRecord) and record.error,
        started_at=_time(at - (ms or 0)),
        ended_at=_time(at),
        ms=ms,
    )


def _audit(agent: str, turn_id: str, session: str, record: CheckRecord, task_id: UUID | None) -> Row:
    """What was decided about one call."""
    return Audit(
        id=derived("audit", agent, record.call),
        created_at=_time(record.at),
        agent=agent,
        action=record.action,
        decision=record.decision,
        person=record.person or None,
        profile=record.profile or None,
        session_id=session,
        turn_id=turn_id,
        task_id=task_id,
        detail=record.detail,
    )


def _described(record: JournalRecord) -> str:
    match record:
        case ModelRecord():
            calls = [block["name"] for block in record.calls]
            return f"model asked for {', '.join(calls)}" if calls else "model answered"
        case BoughtRecord():
            return f"model wrote {record.text}"
        case ResultRecord():
            return f"{record.tool} {'failed' if record.error else 'done'}"
        case AskRecord():
            return f"asked for permission: {record.card['action']}"[:200]
        case DecidedRecord():
            return f"permission: {record.how} {record.by}".strip()[:200]
        case PlanRecord():
            return f"{record.by} proposed {len(record.steps)} steps" if record.by else "nobody proposed steps"
        case StepRecord():
            of = f"step {record.number} of {record.of}: " if record.of else "then: "
            return f"{of}{record.title}"[:200]
    return str(record.fields().get("text", record.k))[:200]


def _detail(record: JournalRecord) -> dict[str, Any]:
    return {key: value for key, value in record.fields().items() if key not in ("k", "at", "ms", "error")}


def _usage(
    agent: str,
    turn_id: str,
    session: str,
    number: int,
    record: PricedRecord,
    provider: str,
    task_id: UUID | None,
) -> Row:
    usage = usage_of(record)
    return TokenUsage(
        id=derived("usage", agent, turn_id, number),
        created_at=_time(record.at),
        agent=agent,
        session_id=session,
        turn_id=turn_id,
        task_id=task_id,
        provider=record.provider or provider,
        model=record.model or "unknown",
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        cost=usage.cost,
        demo=record.demo,
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
