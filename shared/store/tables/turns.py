"""What agents did for it, turn by turn."""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from shared.store.row import Json, Row, Time, Whole, now

TurnState = Literal[
    "running", "complete", "awaiting_input", "awaiting_approval", "error", "stopped", "interrupted"
]


class TurnRow(Row):
    """One unit of an agent's work; `id` is derived from `turn_id`."""

    table = "turns"
    index = (("session_id", "created_at"), ("turn_id",), ("task_id",), ("created_at",))

    turn_id: str
    agent: str
    session_id: str | None = None
    request_id: str | None = None
    user_id: str | None = None
    task_id: UUID | None = None
    state: TurnState = "running"
    epoch: Whole = 0
    tries: Whole = 1
    model: str | None = None
    error: str | None = None
    started_at: Time = Field(default_factory=now)
    ended_at: Time | None = None


class TurnStep(Row):
    """One step of a turn's journal, kept for tracing; `id` is derived from turn and number."""

    table = "turn_steps"
    index = (("turn_id", "number"), ("session_id", "created_at"), ("created_at",))

    turn_id: str
    session_id: str | None = None
    agent: str = ""
    number: Whole
    kind: str
    description: str = ""
    detail: Json = {}
    is_error: bool = False
    started_at: Time = Field(default_factory=now)
    ended_at: Time | None = None
    ms: Whole | None = None
