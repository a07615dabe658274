"""Projects and their repositories."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

from shared.errors import Conflict, ToolError, UsageError
from shared.guard.git import Git
from shared.store.base import Store
from shared.store.records import Project, Repo, RepoKind, project_key
from shared.store.row import derived
from shared.tasks.repos import Repos
from shared.tools.context import Context
from shared.tools.registry import Category, Result

category = Category("project", "Project CRUD, workspace management")

DEFAULT = "default"


async def find(store: Store, slug: str) -> Project:
    """The project of that name; `default` exists from its first use on."""
    found = await store.select(Project, {"slug": slug}, limit=1)
    if found:
        return found[0]
    if slug != DEFAULT:
        raise ToolError(f"there is no project called {slug!r}", "", "list_projects shows them")
    project = Project(id=project_key(slug), slug=slug, name="Default")
    await store.upsert([project])
    return project


@category.tool(effect="pure")
async def list_projects(here: Context) -> Result:
    """List all projects in the system."""
    await find(here.store, DEFAULT)
    rows = await here.store.select(Project, order=[("slug", "asc")])
    return {
        "projects": [
            {
                "id": row.slug,
                "name": row.name,
                "status": row.status,
                "credit_weight": row.credit_weight,
                "max_concurrent_agents": row.max_concurrent_agents,
            }
            for row in rows
        ]
    }


@category.tool(effect="keyed")
async def add_repo(
    here: Context,
    source: Literal["clone", "link", "init"],
    url: str | None = None,
    path: str | None = None,
    name: str | None = None,
    project_id: str | None = None,
    kind: RepoKind = "both",
    push_tasks: bool = False,
) -> Result:
    """Register a repository for a project: clone needs a url, link an existing folder, init makes a new one.

    kind says whose code it holds: frontend, backend or both.
    """
    place = url if source == "clone" else path
    if not place:
        raise ToolError(
            f"{source} needs a {'url' if source == 'clone' else 'path'}", "", "give it and call again"
        )
    project = await find(here.store, project_id or here.project_id)
    repos: Repos = here.extras["repos"]
    if source == "init":
        await _init(repos, place)
    try:
        row = await repos.add(place, project.id, name or "", kind, push_tasks)
    except UsageError as error:
        raise ToolError(error.what, error.why, error.fix) from error
    row = row.model_copy(update={"id": derived("repo", project.slug, row.name)})
    known = await here.store.select(Repo, {"project_id": project.id, "name": row.name}, limit=1)
    if known and (known[0].path, known[0].url) != (row.path, row.url):
        raise ToolError(
            f"the project has a repository called {row.name!r} already",
            f"it is {known[0].url or known[0].path}",
            "give the new one another name",
        )
    try:
        await here.store.upsert([row if not known else row.model_copy(update={"id": known[0].id})])
    except Conflict as error:
        raise ToolError(error.what, error.why, error.fix) from error
    return {
        "created": row.name,
        "name": row.name,
        "kind": row.kind,
        "source_type": source,
        "checkout_base_path": row.path or "",
        "default_branch": row.default_branch,
        "project_id": project.slug,
    }


def _folder(place: str) -> Path:
    path = Path(place).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return path


async def _init(repos: Repos, place: str) -> None:
    path = await asyncio.to_thread(_folder, place)
    git = Git(path, repos.sandbox)
    if git.is_repo():
        return
    await git.init()
    await asyncio.to_thread((path / "README.md").write_text, f"# {path.name}\n", "utf-8")
    await git.commit_all("Start the repository", step=f"init:{path.name}", agent="person")


@category.tool(effect="pure")
async def list_repos(here: Context, project_id: str | None = None) -> Result:
    """List registered repositories, optionally filtered by project."""
    names = {row.id: row.slug for row in await here.store.select(Project)}
    where = {"project_id": (await find(here.store, project_id)).id} if project_id else None
    rows = await here.store.select(Repo, where, order=[("name", "asc")])
    return {
        "repos": [
            {
                "name": row.name,
                "project_id": names.get(row.project_id, ""),
                "kind": row.kind,
                "url": row.url,
                "path": row.path,
                "default_branch": row.default_branch,
            }
            for row in rows
        ]
    }
