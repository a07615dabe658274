"""Who works, and how."""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Literal
from uuid import UUID

from shared.store.row import Changing, Json, Time, Versioned, Whole

AgentState = Literal["idle", "busy", "paused", "offline", "error"]
# chat: a person's conversation; consult: a question and its answer; coding: a task in a worktree
ProfileKind = Literal["chat", "consult", "coding"]


class Agent(Changing):
    """An agent that was registered; who is online right now is told by presence, not by this row."""

    table = "agents"
    unique = (("name",),)

    name: str
    kind: str = "builtin"
    state: AgentState = "offline"
    profile_id: UUID | None = None
    project_id: UUID | None = None
    task_id: UUID | None = None
    home: str | None = None
    workspace: str | None = None
    heartbeat_at: Time | None = None
    destroyed_at: Time | None = None  # it works no more; what it was stays known


class ProfileRow(Versioned):
    """How an agent works: prompt sections in order, model, tools, permissions, limits."""

    table = "profiles"
    unique = (("slug",),)

    slug: str
    name: str
    description: str = ""
    sections: list[Json] = []  # {name, title?, text, enabled}
    docs: str = ""
    model: str | None = None
    temperature: float | None = None
    max_tokens: Whole | None = None
    tools: list[str] = []
    categories: list[str] = []
    permission_profile: str = "standard"
    permissions: Json = {}  # {deny, allow, ask} where it is not a preset
    mcp_servers: Json = {}
    install: Json = {}
    limits: Json = {}
    budget: float | None = None  # dollars
    origin: Json = {}
    kind: ProfileKind = "consult"
