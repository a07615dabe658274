"""What a task's worker is sent: a command file complete in itself, made from the task's row and those before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from shared.bus import messages
from shared.bus.keys import CHATTER
from shared.bus.signing import Signer
from shared.store.base import Store
from shared.store.origin import Origin, mark
from shared.store.records import Repo, Setting, Task, TaskDependency, TaskResult
from shared.tasks import graph
from shared.turns import requests
from shared.turns.queue import Queue

SESSION = "tasks"  # where the outcome of a task is told that nobody asked for in a conversation
DAY_MS = 24 * 3_600_000
_WORD = {50: "high", 100: "medium", 200: "low"}


@dataclass(frozen=True)
class TaskRoute:
    """Where a task's request goes, and where its outcome is told."""

    queue: Queue  # of the agent that does it
    replies: Queue  # Chatter's
    signer: Signer
    project: str


async def send(store: Store, route: TaskRoute, task: Task) -> None:
    """Send an assigned task to its agent. Sent again, it is the same request."""
    key, session = str(task.request_id), task.session_id or SESSION
    who = {"user_id": task.user_id or "", "session_id": session}
    await route.replies.remember_asker(session, who, anew=False)
    await route.replies.expect_answer(key, session)
    request = messages.AgentMessage.outgoing(
        *(key, CHATTER, route.queue.agent, "task", await payload(store, task, route.project)),
        hops=1,
        on_behalf_of=who if task.user_id else None,
        origin=await origin(store, task),
    )
    await requests.send(route.queue, route.signer, request, deadline=-DAY_MS, patience=5)


async def origin(store: Store, task: Task) -> dict[str, Any]:
    """Who made the task; marked if its words are, those of what was done before, or the repository that it is in."""
    made = Origin.of(task.origin)
    if made.foreign:
        return made.kept()
    edges = await store.select(TaskDependency, {"task_id": task.id}, limit=50)
    rows = [row for edge in edges for row in await _last(store, edge.depends_on_id)]
    tried = await _last(store, task.id) if task.error and task.attempts else []
    where = await store.select(Repo, {"id": task.repo_id}, limit=1) if task.repo_id else []
    return replace(made, foreign=mark(*rows, *tried, *where)).kept()


async def _last(store: Store, task: UUID) -> list[TaskResult]:
    return await store.select(TaskResult, {"task_id": task}, order=[("created_at", "desc")], limit=1)


async def payload(store: Store, task: Task, project: str) -> dict[str, Any]:
    """The request's payload."""
    repos = await store.select(Repo, {"id": task.repo_id}, limit=1) if task.repo_id else []
    told = {
        "task_id": task.slug,
        "title": task.title,
        "command_file": await command_file(store, task),
        "priority": _WORD.get(task.priority, str(task.priority)),
        "repo": repos[0].name if repos else None,
        "project": project,
        "task_type": task.type,
        "attempt": task.attempts + 1,
        "epoch": task.epoch,
    }
    return {name: value for name, value in told.items() if value is not None}


async def command_file(store: Store, task: Task) -> str:
    """The whole task in markdown; how an earlier attempt ended comes last."""
    text = task.description.strip()
    parts = [text if text.startswith("# ") else f"# {task.title}\n\n{text}".strip()]
    if task.acceptance:
        parts.append("## It is done when\n\n" + "\n".join(f"- {item}" for item in task.acceptance))
    if task.attachments:
        parts.append("## Read first\n\n" + "\n".join(f"- {one.get('path', one)}" for one in task.attachments))
    if before := await _before(store, task):
        parts.append("## Done before\n\n" + "\n".join(before))
    if task.feedback:
        parts.append(f"## Feedback on what was done before\n\n{task.feedback}")
    if task.error and task.attempts:
        parts.append(f"## How attempt {task.attempts} ended\n\n{task.error}")
    return "\n\n".join(parts)


async def _before(store: Store, task: Task) -> list[str]:
    edges = await store.select(TaskDependency, {"task_id": task.id}, limit=50)
    lines = []
    for needed in await graph.tasks(store, [edge.depends_on_id for edge in edges]):
        found = await _last(store, needed.id)
        told = found[0].summary[:1000] if found else ""
        branch = f" Its work is on the branch {found[0].branch}." if found and found[0].branch else ""
        lines.append(f"- {needed.title}: {told or needed.status.lower()}{branch}")
    return lines


async def paused(store: Store) -> bool:
    """Whether a person paused the scheduler (`orchestrator_control`)."""
    found = await store.select(Setting, {"scope": "orchestrator", "key": "state"}, limit=1)
    return bool(found and found[0].value.get("paused"))
