"""The tables, one class each. Columns are fields; `supabase/migrations` is the same schema in SQL.

Two kinds of references: a `…_id: UUID` names a row of the Store (`task_id` → tasks.id); `session_id`,
`turn_id`, `request_id`, `message_id`, `call_id`, `approval_id` and `user_id` are text, as they stand in
messages. Agents are named by their name. Only state refers by foreign key; logs do not, so their rows may
come in any order. `origin` says who made what acts later, and what they had read (`origin.py`).
"""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import Field, model_validator

from shared.store.row import Changing, Json, Row, Time, Versioned, Whole, derived, new_id, now

__all__ = ["TABLES", "Row", "derived", "new_id", "now", "project_key"]

ProjectStatus = Literal["ACTIVE", "PAUSED", "ARCHIVED"]
RepoKind = Literal["frontend", "backend", "both"]
TaskStatus = Literal[
    "DEFINED", "READY", "ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "PAUSED", "VERIFYING",
    "AWAITING_PLAN_APPROVAL", "AWAITING_APPROVAL", "COMPLETED", "FAILED", "BLOCKED",
]  # fmt: skip
TaskType = Literal["feature", "bugfix", "refactor", "test", "docs", "chore", "research", "plan"]
Verification = Literal["auto_test", "qa_agent", "human"]
Verified = Literal["verified", "partly", "unverified"]
TurnState = Literal[
    "running", "complete", "awaiting_input", "awaiting_approval", "error", "stopped", "interrupted"
]
AgentState = Literal["idle", "busy", "paused", "offline", "error"]
ApprovalState = Literal["pending", "allow_once", "always", "deny", "expired", "withdrawn"]
Decision = Literal["allow", "ask_approved", "ask_denied", "expired", "deny"]
MemoryKind = Literal["turn", "fact", "entity", "strategy", "goal"]
HookRunState = Literal["running", "skipped", "completed", "failed"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]


def project_key(slug: str) -> UUID:
    """The id of the project of that slug: known without asking the Store."""
    return derived("project", slug)


# What was said ------------------------------------------------------------------------------------


class Message(Row):
    """One message that passed on the bus; `id` is derived from `message_id`."""

    table = "messages"
    index = (("created_at",), ("session_id", "created_at"), ("request_id",), ("message_id",))

    message_id: str | None = None
    from_agent: str
    to_agent: str
    type: str
    payload: Json = {}
    channel: str = ""
    session_id: str | None = None
    turn_id: str | None = None
    request_id: str | None = None
    user_id: str | None = None


class ConversationMessage(Row):
    """One message of a conversation as the model reads it; `seq` has no gaps within a session."""

    table = "conversation_messages"
    searched = ("user_name", "content")
    scopes = ("session_id",)
    unique = (("session_id", "seq"),)
    index = (("session_id", "created_at"), ("source_message_id",))

    session_id: str
    seq: Whole
    thread_id: str | None = None
    turn_id: str | None = None
    role: Literal["user", "assistant", "tool", "system"]
    content: list[Json] = []
    tool_calls: list[Json] = []
    tool_call_id: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    source: str | None = None
    source_message_id: str | None = None


class Session(Changing):
    """A conversation; its `key` is the `session_id` of messages. The window begins after `clear_at`."""

    table = "sessions"
    unique = (("key",),)
    index = (("user_id", "last_active_at"), ("last_active_at",))

    key: str
    user_id: str | None = None
    agent: str = "chatter"
    project_id: UUID | None = None
    channel: str | None = None
    active_project: UUID | None = None
    clear_at: Time | None = None
    title: str = ""
    last_active_at: Time = Field(default_factory=now)
    origin: Json = {}


class SnapshotRow(Row):
    """A window that was saved, or the summary of the messages `first_seq` to `last_seq` of a session."""

    table = "snapshots"
    index = (("session_id", "created_at"),)

    session_id: str
    agent: str = "chatter"
    kind: Literal["saved", "summary"] = "saved"
    user_id: str | None = None
    description: str = ""
    summary: str = ""
    message_count: Whole = 0
    first_seq: Whole | None = None
    last_seq: Whole | None = None
    content: list[Json] = []


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


# Where the work happens ---------------------------------------------------------------------------


class Project(Versioned):
    """`slug` is the id that people and models use; the row's id follows from it."""

    table = "projects"
    unique = (("slug",),)

    slug: str
    name: str
    status: ProjectStatus = "ACTIVE"
    description: str = ""
    credit_weight: float = 1.0
    max_concurrent_agents: Whole = 2
    budget: float | None = None  # dollars
    default_branch: str = "main"
    default_profile_id: UUID | None = None
    workspace: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _keyed(cls, data: Any) -> Any:
        if isinstance(data, dict) and "id" not in data and isinstance(data.get("slug"), str):
            return {**data, "id": project_key(data["slug"])}
        return data


class Repo(Changing):
    """A repository: one with a url, or a path that is linked on one home."""

    table = "repos"
    unique = (("project_id", "name"),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    name: str
    kind: RepoKind = "both"
    url: str | None = None
    path: str | None = None
    home: str | None = None
    default_branch: str = "main"
    push_tasks: bool = False
    origin: Json = {}


class Workspace(Versioned):
    """A checkout on one home; while `lease_until` is ahead, the task in `task_id` has it to itself."""

    table = "workspaces"
    unique = (("project_id", "name"),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    repo_id: UUID | None = None
    name: str
    source: Literal["clone", "link", "worktree"] = "clone"
    path: str
    home: str | None = None
    branch: str | None = None
    agent: str | None = None
    task_id: UUID | None = None
    epoch: Whole = 0
    lease_until: Time | None = None
    origin: Json = {}


class Channel(Changing):
    """A channel of a surface, bound to a project, a notes thread or an agent of its own."""

    table = "channels"
    unique = (("surface", "channel_id"),)
    index = (("project_id",),)

    surface: str
    channel_id: str
    name: str = ""
    project_id: UUID | None = None
    note: str | None = None
    agent: str | None = None


# Tasks --------------------------------------------------------------------------------------------


class Task(Versioned):
    """`slug` (adjective-noun) is the id that people and models use."""

    table = "tasks"
    searched = ("title", "description")
    scopes = ("project_id",)
    unique = (("slug",),)
    index = (
        ("project_id", "status"),
        ("status", "priority", "created_at"),
        ("assignee", "status"),
        ("parent_id",),
    )
    belongs = {"project_id": "projects"}

    slug: str
    project_id: UUID
    title: str
    description: str = ""
    acceptance: list[str] = []
    status: TaskStatus = "READY"
    priority: Whole = 100
    type: TaskType | None = None
    assignee: str | None = None
    parent_id: UUID | None = None
    profile_id: UUID | None = None
    repo_id: UUID | None = None
    workspace_id: UUID | None = None
    branch: str | None = None
    base_commit: str | None = None
    pr_url: str | None = None
    session_id: str | None = None  # who asked, and where the outcome is told
    user_id: str | None = None
    request_id: str | None = None
    attempts: Whole = 0
    max_retries: Whole = 3
    requires_approval: bool = False
    verification: Verification | None = None
    budget: float | None = None  # dollars
    plan: Json = {}
    attachments: list[Json] = []
    feedback: str = ""
    question: str = ""
    error: str = ""
    owner: str | None = None  # the instance that holds the lease
    epoch: Whole = 0
    lease_until: Time | None = None
    resume_at: Time | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    archived: bool = False
    origin: Json = {}


class TaskEvent(Row):
    """One transition of a task, and who made it."""

    table = "task_events"
    index = (("task_id", "created_at"), ("created_at",))

    task_id: UUID
    project_id: UUID | None = None
    event: str
    from_status: TaskStatus | None = None
    to_status: TaskStatus | None = None
    actor: str = ""
    epoch: Whole = 0
    detail: Json = {}


class TaskDependency(Row):
    """`task_id` waits until `depends_on_id` is completed."""

    table = "task_dependencies"
    unique = (("task_id", "depends_on_id"),)
    index = (("depends_on_id",),)
    belongs = {"task_id": "tasks", "depends_on_id": "tasks"}

    task_id: UUID
    depends_on_id: UUID


class TaskResult(Row):
    """What one attempt at a task did, as the harness recorded it."""

    table = "task_results"
    searched = ("", "summary", "error")
    scopes = ("task_id",)
    index = (("task_id", "created_at"),)

    task_id: UUID
    attempt: Whole = 1
    epoch: Whole = 0
    agent: str = ""
    summary: str = ""
    branch: str | None = None
    base_commit: str | None = None
    commits: list[str] = []
    files_changed: list[str] = []
    diff_stat: str = ""
    commands: list[Json] = []  # {command, exit_code, digest, ms}
    tests: Json = {}
    tokens_used: Whole = 0
    cost: float = 0.0  # dollars
    verified: Verified = "unverified"
    error: str = ""
    receipt: Json = {}
    origin: Json = {}


# Who works, and what they may ---------------------------------------------------------------------


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


class ProfileRow(Versioned):
    """How an agent works: prompt sections in order, model, tools, permissions, limits."""

    table = "profiles"
    unique = (("slug",),)

    slug: str
    name: str
    description: str = ""
    sections: list[Json] = []  # {name, text, enabled}
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
    decision: Decision
    person: str | None = None
    profile: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    task_id: UUID | None = None
    detail: Json = {}


# What is known ------------------------------------------------------------------------------------


class Note(Versioned):
    """A note of a project, in markdown."""

    table = "notes"
    searched = ("title", "body")
    scopes = ("project_id",)
    unique = (("project_id", "slug"),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    slug: str
    title: str
    body: str = ""
    origin: Json = {}


class ProjectProfile(Versioned):
    """What is understood of a project: architecture, conventions, decisions, pitfalls, in markdown."""

    table = "project_profiles"
    searched = ("", "body")
    scopes = ("project_id",)
    unique = (("project_id",),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    body: str = ""
    origin: Json = {}


class Prompt(Versioned):
    """A prompt template of a project."""

    table = "prompts"
    unique = (("project_id", "name"),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    name: str
    category: str = ""
    tags: list[str] = []
    description: str = ""
    variables: list[Json] = []
    body: str = ""
    origin: Json = {}


class Memory(Changing):
    """Something to recall. A correction does not overwrite: it sets `valid_to` and `superseded_by`."""

    table = "memories"
    searched = ("subject", "body", "context")
    scopes = ("project_id", "scope")
    index = (("project_id", "kind"), ("session_id",), ("kind", "created_at"))

    kind: MemoryKind
    scope: Literal["global", "project"] = "project"
    project_id: UUID | None = None
    session_id: str | None = None
    user_id: str | None = None
    subject: str = ""
    body: str
    context: str = ""
    confidence: float = 0.7
    salience: float = 0.5
    uses: Whole = 0
    successes: Whole = 0
    valid_from: Time = Field(default_factory=now)
    valid_to: Time | None = None
    superseded_by: UUID | None = None
    used_at: Time | None = None
    source: str | None = None  # the turn or note that it came from
    detail: Json = {}
    embedding: list[float] | None = None
    archived: bool = False
    origin: Json = {}


# Hooks --------------------------------------------------------------------------------------------


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


# Accounts -----------------------------------------------------------------------------------------


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


# What others belong to comes first: the order in which tables are made.
TABLES: tuple[type[Row], ...] = (
    Project, Repo, Workspace, Channel, Task, TaskEvent, TaskDependency, TaskResult,
    Message, ConversationMessage, Session, SnapshotRow, TurnRow, TurnStep,
    Agent, ProfileRow, Approval, Audit, Note, ProjectProfile, Prompt, Memory,
    Hook, HookRun, TokenUsage, Setting, Log,
)  # fmt: skip
