"""What was used, what is set, and what was logged."""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Literal
from uuid import UUID

from shared.store.row import Json, Row, Versioned, Whole

LogLevel = Literal["debug", "info", "warning", "error", "critical"]


class TokenUsage(Row):
    """Tokens and dollars of one model call."""

    table = "token_usage"
    index = (("created_at",), ("session_id", "created_at"), ("task_id",), ("project_id", "created_at"))

    agent: str
    session_id: str | None = None
    turn_id: str | None = None
    task_id: UUID | None = None
    project_id: UUID | None = None
    provider: str = ""
    model: str
    input: Whole = 0
    output: Whole = 0
    cache_read: Whole = 0
    cache_write: Whole = 0
    cost: float = 0.0
    demo: bool = False


class Setting(Versioned):
    """A setting that people change while the cluster runs. Scopes that begin with @ are the Store's own."""

    table = "settings"
    unique = (("scope", "key"),)

    scope: str
    key: str
    value: Json = {}


class Log(Row):
    """A line of an agent's log."""

    table = "logs"
    index = (("created_at",), ("agent", "created_at"))

    agent: str
    level: LogLevel = "info"
    message: str
    metadata: Json = {}
    session_id: str | None = None
    turn_id: str | None = None
