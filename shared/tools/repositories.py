"""Tools of category project: the repositories of a project, in their older spelling."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

from shared.errors import Conflict, ToolError, UsageError
from shared.guard import grounds
from shared.guard.git import Git, check_ref
from shared.guard.touching import touching
from shared.store.records import Repo, RepoKind, Workspace, derived
from shared.tasks.repos import Repos
from shared.tools import binding, places, rows
from shared.tools.context import Context
from shared.tools.detail import PLACE, place, words
from shared.tools.registry import Result
from shared.tools.tiers import tier

category = tier("project")

Source = Literal["clone", "link", "init"]


def _opened(arguments: dict[str, Any]) -> str:
    """How and what: `link /srv/shop as shop`."""
    source, name = arguments.get("source"), arguments.get("name")
    where = arguments.get("url") if source == "clone" else arguments.get("path")
    return words(source, place(where), *(("as", name) if name else ()))


@category.tool(
    effect="keyed",
    detail=_opened,
    older=True,
    touches=touching("root", url="address", path=PLACE, push_tasks="address"),
    binds=binding.repository,
)
async def add_repo(
    here: Context,
    source: Source,
    url: str | None = None,
    path: str | None = None,
    name: str | None = None,
    project_id: str | None = None,
    kind: RepoKind = "both",
    push_tasks: bool = False,
    default_branch: str | None = None,
) -> Result:
    """Register a repository for a project: clone needs a url, link an existing folder, init makes a new one.

    kind says whose code it holds: frontend, backend or both.
    """
    project = await rows.project(here.store, project_id or here.project_id)
    repos = places.repos(here)
    place = await _place(here, repos, source, url if source == "clone" else path, name, project.slug)
    try:
        row = await repos.add(place, project.id, name or "", kind, push_tasks)
    except UsageError as error:
        raise ToolError(error.what, error.why, error.fix) from error
    except OSError as error:  # of the path itself: it is too long, or may not be looked at
        raise ToolError(f"{place[:200]!r} cannot be used", error.strerror or "", "") from None
    branch = {"default_branch": check_ref(default_branch)} if default_branch else {}
    row = row.model_copy(update={"id": derived("repo", project.slug, row.name), **branch})
    known = await rows.first(here.store, Repo, project_id=project.id, name=row.name)
    if await rows.first(here.store, Workspace, project_id=project.id, name=row.name):
        raise ToolError(
            f"the project has a workspace called {row.name!r}", "", "give the repository another name"
        )
    if known and (known.path, known.url) != (row.path, row.url):
        raise ToolError(
            f"the project has a repository called {row.name!r} already",
            f"it is {known.url or known.path}",
            "give the new one another name",
        )
    try:
        await here.store.upsert([row if not known else row.model_copy(update={"id": known.id})])
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


async def _place(
    here: Context, repos: Repos, source: Source, given: str | None, name: str | None, slug: str
) -> str:
    """Where the repository is; one that is to be made lies beneath this home, and is made."""
    if source == "init":
        own = repos.home.joinpath("workspaces", slug, rows.kebab(name or "") or "main")
        path = await asyncio.to_thread((Path(given) if given else own).resolve)
        if not grounds.is_made(path, repos.home):
            raise ToolError(
                f"{given!r} cannot be made", "new repositories lie in the data folder", "leave out the path"
            )
        await _init(repos, path)
        return str(path)
    if not given:
        raise ToolError(
            f"{source} needs a {'url' if source == 'clone' else 'path'}", "", "give it and call again"
        )
    return given


async def _init(repos: Repos, path: Path) -> None:
    await asyncio.to_thread(path.mkdir, parents=True, exist_ok=True)
    git = Git(path, repos.sandbox)
    if git.is_repo():
        return
    if await asyncio.to_thread(lambda: any(one.name != ".git" for one in path.iterdir())):
        raise ToolError(
            f"{path.name!r} is no empty folder", "a new repository begins with nothing", "take another name"
        )
    await git.init()
    await asyncio.to_thread((path / "README.md").write_text, f"# {path.name}\n", "utf-8")
    await git.commit_all("Start the repository", step=f"init:{path.name}", agent="person")


@category.tool(
    effect="pure",
    detail=lambda arguments: str(arguments.get("project_id") or ""),
    older=True,
    touches=touching("records"),
)
async def list_repos(here: Context, project_id: str | None = None) -> Result:
    """List registered repositories, optionally filtered by project."""
    names = await rows.projects(here.store)
    where = {"project_id": (await rows.project(here.store, project_id)).id} if project_id else None
    found = await here.store.select(Repo, where, order=[("name", "asc")])
    return {
        "repos": [
            {
                "name": row.name,
                "project_id": names.get(row.project_id, ""),
                "kind": row.kind,
                "url": row.url,
                "path": row.path,
                "home": row.home,
                "default_branch": row.default_branch,
            }
            for row in found
        ]
    }
