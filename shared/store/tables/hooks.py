"""What happens by itself."""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from shared.store.row import Json, Row, Time, Versioned, Whole, now

HookRunState = Literal["running", "skipped", "completed", "failed"]


class Hook(Versioned):
    """A trigger, context steps and a prompt; the cooldown counts from `launched_at`."""

    table = "hooks"
    unique = (("slug",),)
    index = (("project_id",), ("enabled",))
    belongs = {"project_id": "projects"}

    slug: str
    project_id: UUID
    name: str
    enabled: bool = True
    trigger: Json
    context_steps: list[Json] = []
    prompt_template: str
    cooldown_seconds: Whole = 3600
    llm_config: Json = {}
    max_tokens_per_run: Whole | None = None
    daily_cap: Whole | None = None
    agent: str | None = None
    profile_id: UUID | None = None
    launched_at: Time | None = None
    allowed: Json = {}  # {by, at, digest}: the person who allowed exactly these steps
    origin: Json = {}


class HookRun(Row):
    """One run of a hook, from launch to its end."""

    table = "hook_runs"
    index = (("hook_id", "created_at"), ("state",))

    hook_id: UUID
    project_id: UUID | None = None
    state: HookRunState = "running"
    trigger: str = ""
    event: Json = {}
    depth: Whole = 0
    steps: list[Json] = []
    prompt: str = ""
    response: str = ""
    session_id: str | None = None
    turn_id: str | None = None
    tokens_used: Whole = 0
    error: str = ""
    started_at: Time = Field(default_factory=now)
    ended_at: Time | None = None
    origin: Json = {}
