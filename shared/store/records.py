"""All tables, where they are imported from; the classes stand in `tables`, by subject.

Columns are fields; `supabase/migrations` is the same schema in SQL.

Two kinds of references: a `…_id: UUID` names a row of the Store (`task_id` → tasks.id); `session_id`,
`turn_id`, `request_id`, `message_id`, `call_id`, `approval_id` and `user_id` are text, as they stand in
messages. Agents are named by their name. Only state refers by foreign key; logs do not, so their rows may
come in any order. `origin` says who made what acts later, and what they had read (`origin.py`).
"""

from __future__ import annotations

from shared.store.row import Row, derived, new_id, now
from shared.store.tables.accounts import Log, LogLevel, Setting, TokenUsage
from shared.store.tables.agents import Agent, AgentState, ProfileKind, ProfileRow
from shared.store.tables.conversation import ConversationMessage, Message, Post, Session, SnapshotRow
from shared.store.tables.hooks import Hook, HookRun, HookRunState
from shared.store.tables.knowledge import Memory, MemoryKind, Note, ProjectProfile, Prompt
from shared.store.tables.notifications import Delivery, DeliveryState, Subscription, Transport
from shared.store.tables.permissions import Approval, ApprovalState, Audit, CallDecision
from shared.store.tables.projects import (
    Channel,
    Project,
    ProjectStatus,
    Repo,
    RepoKind,
    Workspace,
    project_key,
)
from shared.store.tables.tasks import (
    Task,
    TaskDependency,
    TaskEvent,
    TaskResult,
    TaskStatus,
    TaskType,
    Verification,
    Verified,
)
from shared.store.tables.turns import TurnRow, TurnState, TurnStep

__all__ = [
    "TABLES", "Agent", "AgentState", "Approval", "ApprovalState", "Audit", "CallDecision", "Channel",
    "ConversationMessage", "Delivery", "DeliveryState", "Hook", "HookRun", "HookRunState", "Log", "LogLevel", "Memory",
    "MemoryKind", "Message", "Note", "Post", "ProfileKind", "ProfileRow", "Project", "ProjectProfile", "ProjectStatus",
    "Prompt", "Repo", "RepoKind", "Row", "Session", "Setting", "SnapshotRow", "Subscription", "Task", "TaskDependency",
    "TaskEvent", "TaskResult", "TaskStatus", "TaskType", "TokenUsage", "Transport", "TurnRow", "TurnState", "TurnStep",
    "Verification", "Verified", "Workspace", "derived", "new_id", "now", "project_key",
]  # fmt: skip

# What others belong to comes first: the order in which tables are made.
TABLES: tuple[type[Row], ...] = (
    Project, Repo, Workspace, Channel, Task, TaskEvent, TaskDependency, TaskResult,
    Message, Post, ConversationMessage, Session, SnapshotRow, TurnRow, TurnStep,
    Agent, ProfileRow, Approval, Audit, Note, ProjectProfile, Prompt, Memory,
    Hook, HookRun, Subscription, Delivery, TokenUsage, Setting, Log,
)  # fmt: skip
