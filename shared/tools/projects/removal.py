"""Tools of category project: archive and delete a project, and what becomes of all that is its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

from shared.errors import Conflict, ToolError
from shared.guard.permissions.touching import touching
from shared.store.query import IN_LIMIT
from shared.store.records import (
    Channel,
    HookRun,
    Memory,
    Project,
    Repo,
    Row,
    Setting,
    Task,
    TaskEvent,
    TaskResult,
    TokenUsage,
    Workspace,
    derived,
)
from shared.tasks import fate
from shared.tasks.worktree import prune as pruning
from shared.tools import lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.registry import Result

category = tier("project")

BUSY = ("ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "VERIFYING")


def _project(arguments: dict[str, Any]) -> str:
    return str(arguments.get("project_id") or "")


@category.tool(effect="idempotent", detail=_project, touches=touching("records"))
async def archive_project(here: Context, project_id: str) -> Result:
    """Archive a project that is done with: out of the lists, no task of it begins. resume_project takes it back."""
    row = await lookup.project(here.store, project_id)
    if row.slug == lookup.DEFAULT:
        raise ToolError(f"the project {row.slug!r} cannot be archived", "one project is always there", "")
    await _idle(here, row, "archived")
    if row.status != "ARCHIVED":
        await lookup.project_changed(here, row, "archived")
        row = await lookup.change(here.store, row, status="ARCHIVED")
    await _forget_active(here, row)
    return {"archived": row.slug, "name": row.name}


async def _idle(here: Context, row: Project, what: str) -> None:
    """ToolError where somebody works on a task of the project."""
    tasks = await here.store.select(Task, {"project_id": row.id, "status": ("in", list(BUSY))})
    if tasks:
        raise ToolError(
            f"the project {row.slug!r} cannot be {what}",
            f"tasks are in progress: {', '.join(task.slug for task in tasks[:5])}",
            "wait for their end, or stop them first",
        )


async def _forget_active(here: Context, row: Project) -> None:
    """No conversation works on it any more; one that gets its name is another project."""
    for setting in await here.store.select(Setting, {"key": lookup.ACTIVE}):
        if setting.value.get("project") == row.slug:
            await lookup.keep_setting(here.store, setting.scope, lookup.ACTIVE, {"project": None})


@category.tool(effect="idempotent", detail=_project, touches=touching("loss"))
async def delete_project(here: Context, project_id: str, archive_channels: bool = False) -> Result:
    """Delete a project and all associated data (tasks, repos, results, token ledger). Repositories stay as they are.

    Merged branches of its tasks go; those with work that is not merged stay, and are named.
    """
    row = await lookup.project(here.store, project_id)
    if row.slug == lookup.DEFAULT:
        raise ToolError(f"the project {row.slug!r} cannot be deleted", "one project is always there", "")
    await _idle(here, row, "deleted")
    tasks = await here.store.select(Task, {"project_id": row.id})
    channels = await here.store.select(Channel, {"project_id": row.id})
    result: Result = {"deleted": row.slug, "name": row.name}
    if here.project_id == row.slug:
        result[lookup.ACTIVE] = lookup.DEFAULT
    if channels:
        result["channel_ids"] = [channel.channel_id for channel in channels]
        result["archive_channels"] = archive_channels
        if archive_channels:
            result["warning"] = (
                "no channel was archived, nothing here may do that; they belong to no project now"
            )
    result |= await _stays(here, row)
    result = await lookup.removing(here, result)
    await _clear_disk(here, row)
    await _clear_rows(here, row, [task.id for task in tasks])
    if not await here.store.delete(Project, {"id": row.id, "version": row.version}):
        raise Conflict("the project was changed meanwhile", "", "look at it, then try again")
    mark = derived("project-event", str(row.id), str(row.created_at), "deleted")
    await here.store.upsert([lookup.project_event(here, row, mark, "deleted")])
    return result


async def _stays(here: Context, row: Project) -> Result:
    """What stays on disk of a project that is deleted: files in its folder, and branches that are not merged."""
    filled = bool(row.workspace) and await asyncio.to_thread(_holds, Path(str(row.workspace)))
    result: Result = {"files_kept": row.workspace} if filled else {}
    repos = {repo.id: repo for repo in await here.store.select(Repo, {"project_id": row.id})}
    branches: dict[str, list[str]] = {}
    for task in await fate.unmerged(here.store, row.id):
        repo = repos.get(task.repo_id) if task.repo_id else None
        where = (repo.path or repo.url or repo.name) if repo else "its repository"
        branches.setdefault(where, []).append(str(task.branch))
    return result | ({"branches_kept": branches} if branches else {})


def _holds(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


async def _clear_disk(here: Context, row: Project) -> None:
    """Remove what nobody finds any more once the tasks are gone: merged branches, worktrees, an empty folder."""
    if here.repos is None:
        return
    await pruning.prune(here.repos, here.store, row.id, really=True)
    if row.workspace:
        with contextlib.suppress(OSError):  # it is not empty
            await asyncio.to_thread(Path(row.workspace).rmdir)


async def _clear_rows(here: Context, project: Project, tasks: list[UUID]) -> None:
    """What the database does not take away by itself: rows that name the project or its tasks."""
    for at in range(0, len(tasks), IN_LIMIT):
        part = tasks[at : at + IN_LIMIT]
        await _delete(here, (TaskResult, TaskEvent, TokenUsage), {"task_id": ("in", part)})
    await _delete(here, (TaskEvent, TokenUsage, Memory, HookRun, Workspace, Task), {"project_id": project.id})
    await here.store.update(Channel, {"project_id": None}, {"project_id": project.id})
    await _forget_active(here, project)


async def _delete(here: Context, kinds: Iterable[type[Row]], where: dict[str, Any]) -> None:
    for kind in kinds:
        await here.store.delete(kind, where)
