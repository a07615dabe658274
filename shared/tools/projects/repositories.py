"""Tools of category project: the repositories of a project, in their older spelling."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

from shared.errors import Conflict, ToolError, UsageError
from shared.guard.files import roots
from shared.guard.git.commands import Git, check_ref
from shared.guard.permissions.touching import TouchKind, chosen, touching
from shared.store.origin import marked
from shared.store.records import Project, Repo, RepoKind, Task, TaskEvent, Workspace, derived
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools import binding, checkouts, lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.detail import PLACE, place, words
from shared.tools.registry import Category, Result

category = tier("project")
removing = Category("repos", "Take a repository out of a project")

_PUSH: dict[str, TouchKind] = {"True": "address"}  # to push no more reaches nothing
RepositorySource = Literal["clone", "link", "init"]


def _opened(arguments: dict[str, Any]) -> str:
    """How and what: `link /srv/shop as shop`."""
    source, name = arguments.get("source"), arguments.get("name")
    where = arguments.get("url") if source == "clone" else arguments.get("path")
    return words(source, place(where), *(("as", name) if name else ()))


@category.tool(
    effect="keyed",
    detail=_opened,
    older=True,
    touches=touching("root", url="address", path=PLACE, push_tasks=chosen(**_PUSH)),
    binds=binding.repository,
)
async def add_repo(
    here: Context,
    source: RepositorySource,
    url: str | None = None,
    path: str | None = None,
    name: str | None = None,
    project_id: str | None = None,
    kind: RepoKind | None = None,
    push_tasks: bool | None = None,
    default_branch: str | None = None,
) -> Result:
    """Register a repository for a project: clone needs a url, link an existing folder, init makes a new one.

    kind says whose code it holds: frontend, backend or both (that is what is taken for a new one). One that is
    registered already keeps whatever is not given.
    """
    project = await lookup.project(here.store, project_id or here.project_id)
    repos = checkouts.repos(here)
    given = await _place(here, repos, source, url if source == "clone" else path, name, project.slug)
    wanted: dict[str, Any] = {"kind": kind, "push_tasks": push_tasks}
    wanted |= {"default_branch": check_ref(default_branch)} if default_branch else {}
    wanted = {field: value for field, value in wanted.items() if value is not None}
    mark = derived("project-event", here.step_id or str(lookup.identity(here)), "repo")
    known = await checkouts.registered(here, project, given, name or "")
    if known is None:
        row = await opened_at(here, repos, project, given, name)
        row = (await checkouts.branched(here, project, row)).model_copy(
            update=wanted | {"origin": here.origin.kept()}
        )
        await _need_free(here, project, row)
        changed: dict[str, Any] = {}
        event = "repo_added"
    else:
        changed = {field: value for field, value in wanted.items() if getattr(known, field) != value}
        made = {"origin": here.origin.over(known.origin).kept()} if changed else {}
        row, event = known.model_copy(update=wanted | made), "repo_changed"
    if said := await lookup.first(here.store, TaskEvent, id=mark):  # by this very call, before a crash
        event, changed = said.event.removeprefix("project_"), said.detail["changed"]
    elif known is None or changed:
        detail = {"repo": row.name, "changed": changed}
        await here.store.upsert([lookup.project_event(here, project, mark, event, **detail)])
    try:
        await here.store.upsert([row])
    except Conflict as error:
        raise ToolError(error.what, error.why, error.fix) from error
    result: Result = (
        {"created": row.name} if event == "repo_added" else {"updated": row.name, "changed": changed}
    )
    return result | {
        "name": row.name,
        "kind": row.kind,
        "source_type": source,
        "checkout_base_path": row.path or "",
        "default_branch": row.default_branch,
        "push_tasks": row.push_tasks,
        "project_id": project.slug,
    }


async def opened_at(here: Context, repos: Mirrors, project: Project, given: str, name: str | None) -> Repo:
    try:
        return await repos.add(given, project.id, name or "")
    except UsageError as error:
        raise ToolError(error.what, error.why, error.fix) from error
    except OSError as error:  # of the path itself: it is too long, or may not be looked at
        raise ToolError(f"{given[:200]!r} cannot be used", error.strerror or "", "") from None


async def _need_free(here: Context, project: Project, row: Repo) -> None:
    """ToolError where a path that begins with this name would mean something else already."""
    if await lookup.first(here.store, Workspace, project_id=project.id, name=row.name):
        raise ToolError(
            f"the project has a workspace called {row.name!r}", "", "give the repository another name"
        )
    if known := await lookup.first(here.store, Repo, project_id=project.id, name=row.name):
        raise ToolError(
            f"the project has a repository called {row.name!r} already",
            f"it is {known.url or known.path}",
            "give the new one another name",
        )


@removing.tool(
    effect="idempotent",
    detail=lambda arguments: words(arguments.get("repo_id"), arguments.get("project_id")),
    touches=touching("loss"),
)
async def remove_repo(
    here: Context, repo_id: str, project_id: str | None = None, force: bool = False
) -> Result:
    """Take a repository out of a project. A linked folder stays as it is; a mirror goes, unless work would be lost."""
    row = await lookup.repo(here, repo_id, project_id)
    project = await lookup.first(here.store, Project, id=row.project_id)
    tasks = await here.store.select(Task, {"repo_id": row.id, "archived": False})
    if busy := sorted(task.slug for task in tasks if task.status not in ("COMPLETED", "FAILED", "BLOCKED")):
        raise ToolError(
            f"the repository {row.name!r} was not removed",
            f"tasks are to be done in it: {', '.join(busy[:10])}",
            "stop and delete them, or do them elsewhere, first",
        )
    mirror = checkouts.repos(here).mirror(row)
    if mirror is not None and not force and (left := await mirror.unpushed_branches()):
        raise ToolError(
            f"the repository {row.name!r} was not removed",
            f"its mirror holds commits that are nowhere else: {', '.join(left[:10])}",
            "push them, or discard these tasks, first; with force they are lost",
        )
    result: Result = {"removed": row.name, "project_id": project.slug if project else ""}
    result |= {"files_kept": row.path} if row.path else {"files_removed": mirror is not None}
    result = await lookup.removing(here, result)
    if project is not None:
        mark = derived("project-event", here.step_id or str(lookup.identity(here)), "repo")
        await here.store.upsert([lookup.project_event(here, project, mark, "repo_removed", repo=row.name)])
    await here.store.update(Workspace, {"repo_id": None}, {"repo_id": row.id})
    await here.store.delete(Repo, {"id": row.id})
    await checkouts.repos(here).forget(row)
    return result


async def _place(
    here: Context, repos: Mirrors, source: RepositorySource, given: str | None, name: str | None, slug: str
) -> str:
    """Where the repository is; one that is to be made lies beneath this home, and is made."""
    if source == "init":
        own = repos.home.joinpath("workspaces", slug, lookup.kebab(name or "") or "main")
        path = await asyncio.to_thread((Path(given) if given else own).resolve)
        if not roots.is_made(path, repos.home):
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


async def _init(repos: Mirrors, path: Path) -> None:
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
    names = await lookup.projects(here.store)
    where = {"project_id": (await lookup.project(here.store, project_id)).id} if project_id else None
    rows = await here.store.select(Repo, where, order=[("name", "asc")])
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
            for row in rows
        ]
    } | marked(rows)
