"""Tasks, and what became of each."""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Literal
from uuid import UUID

from shared.store.row import Json, Row, Time, Versioned, Whole

TaskStatus = Literal[
    "DEFINED", "READY", "ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "PAUSED", "VERIFYING",
    "AWAITING_PLAN_APPROVAL", "AWAITING_APPROVAL", "COMPLETED", "FAILED", "BLOCKED",
]  # fmt: skip
TaskType = Literal["feature", "bugfix", "refactor", "test", "docs", "chore", "research", "plan"]
Verification = Literal["auto_test", "qa_agent", "human"]
Verified = Literal["verified", "partly", "unverified"]


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
