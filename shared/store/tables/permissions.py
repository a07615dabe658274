"""What was asked and allowed."""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Literal
from uuid import UUID

from shared.store.row import Changing, Json, Row, Time

ApprovalState = Literal["pending", "allow_once", "always", "deny", "expired", "withdrawn"]
CallDecision = Literal["allow", "ask_approved", "ask_denied", "expired", "deny"]


class Approval(Changing):
    """An approval as surfaces list it (`id` derived from `approval_id`); the turn's journal is its truth."""

    table = "approvals"
    index = (("state", "created_at"), ("session_id", "created_at"), ("approval_id",))

    approval_id: str
    agent: str
    session_id: str | None = None
    turn_id: str | None = None
    call_id: str | None = None
    user_id: str | None = None
    action: str
    arguments: Json = {}
    arguments_hash: str = ""
    why: str = ""
    state: ApprovalState = "pending"
    decided_by: str | None = None
    reason: str = ""
    pattern: str | None = None
    scope: str | None = None
    expires_at: Time | None = None
    decided_at: Time | None = None
    bound: Json = {}


class Audit(Row):
    """One check of a permission, or one override by a person."""

    table = "audit_log"
    index = (("created_at",), ("agent", "created_at"), ("action",))

    agent: str
    action: str
    decision: CallDecision
    person: str | None = None
    profile: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    task_id: UUID | None = None
    detail: Json = {}
