"""Tools of category project: workspaces, the checkouts of a project in which agents and people work."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any, Literal

from shared.errors import Conflict, PromptDockError, ToolError, UsageError
from shared.guard.files import roots
from shared.guard.git.checkout import Checkout
from shared.guard.permissions.touching import chosen, touching
from shared.guard.sandbox.addresses import LOCAL
from shared.store.origin import marked
from shared.store.records import Project, Repo, Task, Workspace
from shared.store.row import now
from shared.tools import checkouts, lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.detail import PLACE, place, words
from shared.tools.registry import Result

category = tier("project")


def _workspace(arguments: dict[str, Any]) -> str:
    return str(arguments.get("workspace_id") or arguments.get("project_id") or "")


def _added(arguments: dict[str, Any]) -> str:
    """Of which project, how and what: `shop link /srv/shop`."""
    source, path = str(arguments.get("source") or ""), arguments.get("path")
    return words(arguments.get("project_id"), source, place(path) if source == "link" else path)


@category.tool(
    effect="keyed", detail=_added, touches=touching("root", source=chosen(clone="address"), path=PLACE)
)
async def add_workspace(
    here: Context,
    project_id: str,
    source: Literal["clone", "link"],
    path: str | None = None,
    name: str | None = None,
) -> Result:
    """Add a workspace directory for a project: a clone of its repository, or a link to a checkout on this machine."""
    project = await lookup.project(here.store, project_id)
    row = await lookup.first(here.store, Workspace, id=lookup.identity(here, "workspace"))
    if row is None:  # else this very call made it before a crash
        row = await (_linked if source == "link" else _cloned)(here, project, path, name)
        await here.store.insert(row)
    return {
        "created": row.name,
        "workspace_id": row.name,
        "project_id": project.slug,
        "source": row.source,
        "path": row.path,
        "branch": row.branch,
    }


async def _need_free(here: Context, project: Project, name: str) -> None:
    """ToolError where a path that begins with this name would mean something else already."""
    for kind in (Repo, Workspace):
        if await lookup.first(here.store, kind, project_id=project.id, name=name):
            what = "repository" if kind is Repo else "workspace"
            raise ToolError(f"the project has a {what} {name!r} already", "", "give the new one another name")


async def _linked(here: Context, project: Project, path: str | None, name: str | None) -> Workspace:
    if not path:
        raise ToolError("link needs a path", "", "give the folder of the checkout")
    own = checkouts.repos(here)
    try:
        repo = await own.add(path, project.id, name or "")
    except UsageError as error:
        raise ToolError(error.what, error.why, error.fix) from error
    except OSError as error:  # of the path itself: it is too long, or may not be looked at
        raise ToolError(f"{path[:200]!r} cannot be used", error.strerror or "", "") from None
    await _need_free(here, project, repo.name)
    fields = {"name": repo.name, "path": str(repo.path), "source": "link", "branch": repo.default_branch}
    return _row(here, project, None, fields)


async def _cloned(here: Context, project: Project, path: str | None, name: str | None) -> Workspace:
    repo = await _source(here, project)
    called = lookup.kebab(name or path or f"{repo.name}-{await _count(here, project) + 1}")
    if not called:
        raise ToolError("the workspace needs a name", "it has no letter or digit", "give another")
    await _need_free(here, project, called)
    folder = checkouts.folder(here, project.slug, called)
    git = Checkout(folder, checkouts.sandbox(here))
    there = git.is_repo()
    if not there or not await git.head():
        if there:  # cut off by a crash before its first commit was there
            await asyncio.to_thread(shutil.rmtree, folder)
            git = Checkout(folder, checkouts.sandbox(here))
        # A linked repository was given by a person: its own path may be cloned from.
        own = checkouts.repos(here).home
        await git.clone(
            repo.url or str(roots.opened(repo.name, str(repo.path), own)),
            repo.default_branch,
            LOCAL if repo.url is None else checkouts.reach(here),
        )
    fields = {"name": called, "path": str(folder), "source": "clone", "branch": await git.branch()}
    return _row(here, project, repo, fields)


async def _source(here: Context, project: Project) -> Repo:
    rows = await here.store.select(Repo, {"project_id": project.id}, order=[("created_at", "asc")], limit=2)
    if not rows:
        raise ToolError(f"the project {project.slug!r} has no repository", "", "register one with add_repo")
    if rows[0].url is None and rows[0].home != checkouts.repos(here).home_id:
        raise ToolError(f"the repository {rows[0].name!r} lies on another machine", "", "give it a url")
    return rows[0]


async def _count(here: Context, project: Project) -> int:
    return await here.store.count(Workspace, {"project_id": project.id})


def _row(here: Context, project: Project, repo: Repo | None, fields: dict[str, Any]) -> Workspace:
    id = lookup.identity(here, "workspace")
    fields |= {"home": checkouts.repos(here).home_id, "origin": here.origin.kept()}
    return Workspace(id=id, project_id=project.id, repo_id=repo.id if repo else None, **fields)


@category.tool(effect="pure", detail=_workspace, touches=touching("records"))
async def list_workspaces(here: Context, project_id: str | None = None) -> Result:
    """List workspaces, optionally filtered by project, and which task has which."""
    names = await lookup.projects(here.store)
    told, found = [], await _all(here, project_id)
    for row in found:
        task = await lookup.first(here.store, Task, id=row.task_id) if row.task_id else None
        told.append(
            {
                "id": row.name,
                "project_id": names.get(row.project_id, ""),
                "source": row.source,
                "path": row.path,
                "home": row.home,
                "branch": row.branch,
                "locked": _locked(row),
                "locked_by": row.agent,
                "task_id": task.slug if task else None,
            }
        )
    return {"workspaces": told, **marked(found)}


async def _all(here: Context, project_id: str | None) -> list[Workspace]:
    where = {"project_id": (await lookup.project(here.store, project_id)).id} if project_id else None
    return await here.store.select(Workspace, where, order=[("name", "asc")])


def _locked(row: Workspace) -> bool:
    return row.lease_until is not None and row.lease_until > now()


def _git(here: Context, row: Workspace) -> Checkout:
    if row.home and row.home != checkouts.repos(here).home_id:
        raise ToolError(f"the workspace {row.name!r} lies on another machine", f"home {row.home}", "")
    git = Checkout(roots.opened(row.name, row.path, checkouts.repos(here).home), checkouts.sandbox(here))
    if not git.is_repo():
        raise ToolError(
            f"the workspace {row.name!r} is gone", "its folder is no checkout any more", "remove it"
        )
    return git


async def _base(here: Context, row: Workspace) -> str:
    """The default branch of a workspace's repository, else of its project."""
    repo = await lookup.first(here.store, Repo, id=row.repo_id) if row.repo_id else None
    project = await lookup.first(here.store, Project, id=row.project_id)
    return repo.default_branch if repo else project.default_branch if project else "main"


@category.tool(effect="pure", detail=_workspace, touches=touching("files"))
async def find_merge_conflict_workspaces(here: Context, project_id: str | None = None) -> Result:
    """Scan project workspaces for branches that cannot be merged into the default branch without conflicts."""
    found: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    workspaces = await _all(here, project_id or here.project_id)
    for row in workspaces:
        try:
            clashes = await _git(here, row).clashes(await _base(here, row))
        except PromptDockError as error:
            failed.append({"workspace_id": row.name, "error": str(error)})
            continue
        if clashes:
            branches = [{"branch": branch, "files": files[:50]} for branch, files in clashes.items()]
            found.append({"workspace_id": row.name, "base": await _base(here, row), "branches": branches})
    result: Result = {"conflicts": found, "scanned": len(workspaces) - len(failed), "source": "repository"}
    return result | ({"failed": failed} if failed else {})


@category.tool(effect="idempotent", detail=_workspace, touches=touching("records"))
async def release_workspace(here: Context, workspace_id: str, project_id: str | None = None) -> Result:
    """Force-release the lock of a workspace that another program took; tasks, which have worktrees, take none."""
    row = await lookup.workspace(here, workspace_id, project_id)
    if row.agent or row.task_id or row.lease_until:
        free = {"agent": None, "task_id": None, "lease_until": None, "epoch": row.epoch + 1}
        await lookup.change(here.store, row, **free)
        return {"released": row.name, "was_locked_by": row.agent}
    return {"released": row.name, "was_locked_by": None, "warning": "nobody had it"}


@category.tool(effect="idempotent", detail=_workspace, touches=touching("loss"))
async def remove_workspace(here: Context, workspace_id: str, project_id: str | None = None) -> Result:
    """Delete a workspace from a project. A clone's files go too, unless work would be lost; a link's stay."""
    row = await lookup.workspace(here, workspace_id, project_id)
    if _locked(row):
        raise ToolError(
            f"the workspace {row.name!r} is in use", f"by {row.agent or 'a task'}", "release it first"
        )
    ours = row.source == "clone" and _ours(checkouts.folder(here), Path(row.path))
    told = await lookup.removing(here, {"removed": row.name, "files_removed": ours})
    if ours:
        await _drop(here, row)
    if not await here.store.delete(Workspace, {"id": row.id, "version": row.version}):
        raise Conflict("the workspace was changed meanwhile", "", "look at it, then try again")
    return told


async def _drop(here: Context, row: Workspace) -> None:
    """Remove the files of a clone of ours; ToolError where commits or changes are nowhere else."""
    folder = Path(row.path)
    git = Checkout(folder, checkouts.sandbox(here))
    if git.is_repo():
        if await git.status() or await git.unpushed():
            raise ToolError(
                f"the workspace {row.name!r} was not removed",
                "it holds work that is nowhere else: changes that are not committed, or commits not pushed",
                "commit and push them, or remove the folder by hand",
            )
        await asyncio.to_thread(shutil.rmtree, folder)


def _ours(own: Path, folder: Path) -> bool:
    return folder.resolve().is_relative_to(own.resolve()) and folder.resolve() != own.resolve()


@category.tool(effect="idempotent", detail=_workspace, touches=touching("address"))
async def sync_workspaces(here: Context, project_id: str | None = None, skip_locked: bool = True) -> Result:
    """Synchronize all project workspaces to the latest default branch. No commit and no change gets lost."""
    told = []
    for row in await _all(here, project_id or here.project_id):
        if _locked(row) and skip_locked:
            told.append({"workspace_id": row.name, "status": "skipped", "why": f"locked by {row.agent}"})
            continue
        try:
            git = _git(here, row)
            if not await git.remote_url():
                told.append({"workspace_id": row.name, "status": "skipped", "why": "it has no remote"})
                continue
            repo = await lookup.first(here.store, Repo, id=row.repo_id) if row.repo_id else None
            await git.fetch(reach=LOCAL if repo and repo.path else checkouts.reach(here))
            told.append({"workspace_id": row.name, "status": await git.forward(await _base(here, row))})
        except PromptDockError as error:
            told.append({"workspace_id": row.name, "status": "failed", "why": str(error)})
    return {"workspaces": told, "synced": sum(one["status"] in ("updated", "up to date") for one in told)}
