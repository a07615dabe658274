"""Tasks as the person and the model see them; these tools are always shown."""

from __future__ import annotations

from typing import Any

from shared.errors import ToolError
from shared.store.base import Store
from shared.store.records import Project, Repo, Task, TaskResult, TaskStatus, project_key
from shared.tools.context import Context
from shared.tools.registry import Category, Result

category = Category("core", "Tasks, always at hand")

_MOST = 200


async def find(store: Store, slug: str) -> Task:
    """The task of that id; ToolError where there is none."""
    found = await store.select(Task, {"slug": slug}, limit=1)
    if not found:
        raise ToolError(f"there is no task called {slug!r}", "", "list_tasks shows them")
    return found[0]


@category.tool(effect="pure")
async def list_tasks(
    here: Context, project_id: str | None = None, status: TaskStatus | None = None
) -> Result:
    """List tasks, optionally filtered by project or status."""
    where: dict[str, Any] = {"archived": False}
    if project_id:
        where["project_id"] = project_key(project_id)
    if status:
        where["status"] = status
    rows = await here.store.select(Task, where, order=[("created_at", "desc")], limit=_MOST)
    projects = {row.id: row.slug for row in await here.store.select(Project)}
    return {
        "tasks": [
            {
                "id": row.slug,
                "project_id": projects.get(row.project_id, ""),
                "title": row.title,
                "status": row.status,
                "priority": row.priority,
                "assigned_agent": row.assignee,
            }
            for row in rows
        ],
        "total": await here.store.count(Task, where),
    }


@category.tool(effect="pure")
async def get_task(here: Context, task_id: str) -> Result:
    """Get full details of a specific task including its description and, once it has one, its result."""
    task = await find(here.store, task_id)
    repos = await here.store.select(Repo, {"id": task.repo_id}, limit=1) if task.repo_id else []
    results = await here.store.select(
        TaskResult, {"task_id": task.id}, order=[("created_at", "desc")], limit=1
    )
    told: Result = {
        "id": task.slug,
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "assigned_agent": task.assignee,
        "description": task.description,
        "repo": repos[0].name if repos else None,
        "branch": task.branch,
        "error": task.error or None,
        "retry_count": task.attempts,
        "max_retries": task.max_retries,
        "requires_approval": task.requires_approval,
    }
    if results:
        told["result"] = results[0].model_dump(
            mode="json",
            include={
                "summary",
                "commits",
                "files_changed",
                "diff_stat",
                "commands",
                "verified",
                "error",
                "tokens_used",
            },
        )
    return told
