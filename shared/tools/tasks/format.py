"""Tasks as tools show them: a line of a list, the whole of one, and lists drawn flat, compact or as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal
from uuid import UUID

from shared.store.base import Store
from shared.store.records import ProfileRow, Task, TaskDependency, TaskStatus
from shared.tasks import questions

Display = Literal["flat", "tree", "compact"]
DONE = ("COMPLETED",)
_MARKS = {"COMPLETED": "✓", "FAILED": "✗", "BLOCKED": "!", "IN_PROGRESS": "▶", "ASSIGNED": "▶"}


def line(task: Task, project: str) -> dict[str, Any]:
    """A task in a list."""
    return {
        "id": task.slug,
        "project_id": project,
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "assigned_agent": task.assignee,
    }


async def full(store: Store, task: Task, project: str) -> dict[str, Any]:
    """Everything about one task but its result."""
    edges = await store.select(TaskDependency, {"task_id": task.id}, limit=100)
    needs = [await store.select(Task, {"id": edge.depends_on_id}, limit=1) for edge in edges]
    parent = await store.select(Task, {"id": task.parent_id}, limit=1) if task.parent_id else []
    profiles = await store.select(ProfileRow, {"id": task.profile_id}, limit=1) if task.profile_id else []
    result: dict[str, Any] = {
        **line(task, project),
        "description": task.description,
        "acceptance": task.acceptance,
        "task_type": task.type,
        "branch": task.branch,
        "retry_count": task.attempts,
        "max_retries": task.max_retries,
        "requires_approval": task.requires_approval,
        "budget": task.budget if task.budget is not None else "",
        "resumes": task.resume_at.isoformat() if task.status == "PAUSED" and task.resume_at else "",
        "verification_type": task.verification,
        "profile_id": profiles[0].slug if profiles else None,
        "pr_url": task.pr_url,
        "depends_on": [rows[0].slug for rows in needs if rows],
        "parent": parent[0].slug if parent else None,
        "attachments": task.attachments,
        "plan": task.plan,
        "feedback": task.feedback,
        "last_error": task.error,
        "question": asked.card() if (asked := await questions.of(store, task)) else "",
        "archived": task.archived,
    }
    return {key: value for key, value in result.items() if value not in ("", [], {})}


def compact(tasks: Iterable[Task]) -> str:
    """One short line for each task."""
    return "\n".join(f"{_mark(task.status)} {task.slug} {task.title}" for task in tasks)


def tree(tasks: Sequence[Task], roots: Sequence[Task], depth: int = 20, brief: bool = False) -> str:
    """Tasks below their parents, with box-drawing characters; children beyond `depth` are counted."""
    below: dict[UUID | None, list[Task]] = {}
    for task in tasks:
        below.setdefault(task.parent_id, []).append(task)
    lines: list[str] = []
    seen: set[UUID] = set()

    def draw(task: Task, prefix: str, branch: str, level: int) -> None:
        seen.add(task.id)
        lines.append(f"{prefix}{branch}{_told(task, brief)}")
        inner = prefix + {"├── ": "│   ", "└── ": "    ", "": ""}[branch]
        children = [child for child in below.get(task.id, []) if child.id not in seen]
        if level >= depth:
            if children:
                lines.append(f"{inner}└── … {len(children)} more below")
            return
        for place, child in enumerate(children, 1):
            draw(child, inner, "└── " if place == len(children) else "├── ", level + 1)

    for root in roots:
        draw(root, "", "", 0)
    return "\n".join(lines)


def _told(task: Task, brief: bool) -> str:
    if brief:
        return f"{_mark(task.status)} {task.slug}"
    return f"{_mark(task.status)} {task.slug} [{task.status}] {task.title}"


def _mark(status: TaskStatus) -> str:
    return _MARKS.get(status, "○")
