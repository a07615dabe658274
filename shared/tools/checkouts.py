"""Where the code of a project lies on this home: its repositories and workspaces, as the roots of a call.

Agents that work on a task, or answer a question, bring their roots with the turn. A person's conversation
brings none: what a call names is then looked up here, in the active project or in the one that it names.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shared import log
from shared.errors import PromptDockError, StoreUnavailable, ToolError
from shared.guard.files import roots as grounds
from shared.guard.git.checkout import Checkout
from shared.guard.sandbox.addresses import PUBLIC, Reach
from shared.guard.sandbox.sandbox import Sandbox
from shared.store.records import Project, Repo, Workspace, project_key
from shared.store.row import now
from shared.tasks.defaults import lying, real
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools import lookup
from shared.tools.context import Context, Root
from shared.tools.paths import locate
from shared.tools.registry import Function, Result


class OnAnotherHost(ToolError):
    """The files that are meant lie on another disk."""

    def __init__(self, name: str, home: str, path: str = "") -> None:
        super().__init__(
            f"{name!r} lies on another machine",
            f"home {home}" + (f", in {path}" if path else ""),
            "tools that read work from here; to change it, work on that machine, or register the repository by its "
            "url: then every machine has it",
        )
        self.home = home


def wherever(function: Function) -> Function:
    """A tool that reads: where its files lie on another disk, it runs there; the caller does not see it."""

    @functools.wraps(function)
    async def run(here: Context, **arguments: Any) -> Result:
        try:
            return await function(here, **arguments)
        except OnAnotherHost as error:
            if here.cluster is None:
                raise
            # Only what is not left out: a tool of another release may not know it.
            given = {name: value for name, value in arguments.items() if value not in (None, "")}
            name = str(getattr(function, "__name__", ""))
            return await here.cluster.read_at(error.home, name, given, here.project_id, here.step_id)

    return run


def repos(here: Context) -> Mirrors:
    """The repositories of this home, as the worker hands them over."""
    if here.repos is None:
        raise ToolError("no repository can be reached here", "this turn has no home", "ask Chatter instead")
    return here.repos


async def registered(here: Context, project: Project, place: str, name: str) -> Repo | None:
    """The row of a folder here or a url that is registered already, `name` being how it is to be called.

    ToolError where it belongs to another project, or is called otherwise.
    """
    known = [row for row in await here.store.select(Repo) if row.url or row.home == repos(here).home_id]
    found = lying(known, place)
    own = [row for row in found if row.project_id == project.id]
    if own and name and own[0].name != name:
        raise ToolError(
            f"{place[:200]!r} is registered already, as {own[0].name!r}",
            "a repository has one name in a project",
            f"use that name, or take it out first: remove_repo (a person: promptdock repo remove {own[0].name})",
        )
    if own or not found:
        return own[0] if own else None
    slug = (await lookup.projects(here.store)).get(found[0].project_id, "")
    raise ToolError(
        f"{place[:200]!r} belongs to project {slug!r} already, as {found[0].name!r}",
        "a repository is of one project",
        f"go there (promptdock project use {slug}), or take it out there first: "
        f"promptdock repo remove {found[0].name} --project {slug}",
    )


async def branched(here: Context, project: Project, repo: Repo) -> Repo:
    """A new repository with the default branch of its project, where that was chosen and is there."""
    name = project.default_branch
    if name in ("main", repo.default_branch):
        return repo
    git = await repos(here).source(repo)
    for ref in (f"refs/heads/{name}", f"refs/remotes/origin/{name}"):
        if await git.commit_of(ref):
            return repo.model_copy(update={"default_branch": name})
    return repo


async def source(here: Context, repo: Repo, fresh: bool = False) -> Checkout:
    """Where the branches of a repository's tasks lie; Elsewhere where that is another disk."""
    if _is_away(repo, repos(here).home_id):
        raise OnAnotherHost(repo.name, str(repo.home), str(repo.path))
    git = await repos(here).source(repo, fresh)
    return Checkout(git.path, git.sandbox)


def sandbox(here: Context) -> Sandbox:
    """What confines commands in this turn."""
    given = here.sandbox or (here.repos.sandbox if here.repos else None)
    return given or Sandbox("refused", "this turn has no sandbox")


def folder_of(here: Context, slug: str, *parts: str) -> Path | None:
    """A place in a project's own folder of this home; None where the turn has no home."""
    return folder(here, slug, *parts) if here.repos else None


def folder(here: Context, *parts: str) -> Path:
    """A place in the folder of all projects' workspaces of this home."""
    return repos(here).home.joinpath("workspaces", *parts)


async def opened(
    here: Context, path: str = "", project_id: str = "", repo_id: str = "", wanted: str = ""
) -> tuple[Context, str]:
    """`here` with the roots that a call may mean, and the path in them.

    A path may begin with a project's id; then that project's roots are meant. A turn that brought its own
    roots keeps them.
    """
    head, _, rest = path.partition("/")
    if here.roots or here.repos is None:
        if here.cluster is not None and project_id in ("", here.project_id):
            await _need_here(here, wanted or head)
            await _need_ours(here, here.roots, head)
        return here, path
    project = await lookup.project_for(here, project_id, repo_id)
    found = await _roots(here, project, wanted or head)
    if head and head not in found and not project_id and not repo_id:
        other = await lookup.first(here.store, Project, slug=head)
        if other is not None:
            project, path = other, rest
            found = await _roots(here, other, rest.partition("/")[0])
        else:
            await _need_ours(replace(here, project_id=project.slug), found, head)
    if not found:
        raise ToolError(
            f"project {project.slug!r} has no repository or workspace here",
            "",
            "register one with add_repo (a person: promptdock repo add PATH|URL), make a workspace with "
            "add_workspace, or go to another project: list_projects, set_active_project",
        )
    return replace(here, roots=found, project_id=project.slug), path


async def _roots(here: Context, project: Project, wanted: str) -> dict[str, Root]:
    """The roots of a project; only the wanted one, if it is the name of one: mirrors cost a fetch."""
    own = repos(here)
    known = await here.store.select(Repo, {"project_id": project.id}, order=[("name", "asc")])
    spaces = await here.store.select(Workspace, {"project_id": project.id}, order=[("name", "asc")])
    names = {row.name for row in known} | {row.name for row in spaces}
    roots: dict[str, Root] = {}
    everything: list[Repo | Workspace] = [*known, *spaces]
    away = {row.name: row for row in everything if _is_away(row, own.home_id)}
    only = next(iter(away)) if len(away) == len(names) == 1 else ""
    if name := (wanted if wanted in away else only):
        raise OnAnotherHost(name, str(away[name].home), str(away[name].path))
    for repo in known:
        if (wanted in names and wanted != repo.name) or repo.name in away:
            continue
        try:
            place, commit = await own.read_root(repo)
        except PromptDockError as error:
            if repo.name == wanted or len(names) == 1:
                raise ToolError(error.what, error.why, error.fix) from error
            log.get().warning("A repository cannot be opened", repo=repo.name, why=str(error))
            continue
        roots[repo.name] = Root(
            repo.name, place, repo.kind, commit, writable=bool(repo.path) and not grounds.ours(place)
        )
    for space in spaces:
        if (wanted in names and wanted != space.name) or (space.home or own.home_id) != own.home_id:
            continue
        free = space.lease_until is None or space.lease_until <= now()
        try:
            place = grounds.opened(space.name, space.path, own.home)
        except ToolError as error:
            if space.name == wanted or len(names) == 1:
                raise
            log.get().warning("A workspace cannot be opened", workspace=space.name, why=str(error))
            continue
        roots[space.name] = Root(space.name, place, writable=free and not grounds.ours(place))
    return roots


def _is_away(row: Repo | Workspace, home: str) -> bool:
    return bool(row.path) and bool(row.home) and row.home != home


async def _need_here(here: Context, name: str) -> None:
    """Elsewhere, if this is a repository of the turn's project that is linked on another disk."""
    if not name or name in here.roots:
        return
    try:
        found = await lookup.first(here.store, Repo, project_id=project_key(here.project_id), name=name)
    except StoreUnavailable:
        return  # what lies here can be read without the Store
    if found is not None and found.path and found.home:
        raise OnAnotherHost(found.name, found.home, found.path)


async def _need_ours(here: Context, roots: Mapping[str, Root], head: str) -> None:
    """ToolError, with how to go there, for a path that begins with a repository of another project."""
    if not head or head in roots or _holds(roots, head):
        return
    try:
        rows = await here.store.select(Repo, {"name": head}, limit=5)
    except StoreUnavailable:
        return  # what lies here can be read without the Store
    own = project_key(here.project_id)
    if rows and all(repo.project_id != own for repo in rows):
        raise await lookup.another(here.store, rows, here.project_id)


def _holds(roots: Mapping[str, Root], name: str) -> bool:
    return any(os.path.lexists(root.path / name) for root in roots.values())


async def root(
    here: Context, project_id: str = "", workspace: str = "", repo_id: str = "", path: str = ""
) -> tuple[Context, Root, str]:
    """The one root that a call means, and the path in it."""
    wanted = await named(here, workspace or repo_id, project_id)
    here, path = await opened(here, path, project_id, repo_id, wanted)
    found, inner = locate(here, project_id, wanted, path)
    return here, found, inner


async def named(here: Context, given: str, project_id: str = "") -> str:
    """The name of the workspace or repository that a call names in whatever way; "" for none."""
    if not given or given in here.roots:
        return given
    if given.startswith(("/", "~")):
        path = real(given)
        if found := [root.name for root in here.roots.values() if str(root.path) == path]:
            return found[0]
    if here.roots and here.cluster is None:
        return given
    project = project_id if project_id and project_id not in here.roots else here.project_id
    if await lookup.first(here.store, Workspace, project_id=project_key(project), name=given):
        return given
    return (await lookup.repo(here, given, project_id and project)).name


def checkout(here: Context, root: Root, *, change: bool = False) -> Checkout:
    """git in a root; ToolError where it is to be changed and may not."""
    if change and not root.writable:
        raise ToolError(
            f"{root.name!r} cannot be changed",
            "it is a copy for reading, or a task works in it",
            "make a workspace of your own with add_workspace",
        )
    return Checkout(root.path, sandbox(here), here.worktree.lock)


def reach(here: Context) -> Reach:
    """How far remotes may lead."""
    return here.repos.reach if here.repos else PUBLIC


async def default_branch(here: Context, root: Root, git: Checkout) -> str:
    """The branch that work is merged into: the repository's, else the project's, else what git knows."""
    project = await lookup.first(here.store, Project, slug=here.project_id)
    names = [await git.default_branch()]
    if project is not None:
        known = await _repo(here, project, root.name)
        names = [known.default_branch if known else project.default_branch, *names]
    for name in names:
        if name and await git.commit_of(f"refs/heads/{name}"):
            return name
    raise ToolError(
        "the default branch is not known here", f"there is no {' or '.join(filter(None, names)) or 'main'}",
        "name it, or set it with set_default_branch",
    )  # fmt: skip


async def _repo(here: Context, project: Project, name: str) -> Repo | None:
    """The repository that a root is of: by its own name, or as a workspace of it."""
    if found := await lookup.first(here.store, Repo, project_id=project.id, name=name):
        return found
    space = await lookup.first(here.store, Workspace, project_id=project.id, name=name)
    return await lookup.first(here.store, Repo, id=space.repo_id) if space and space.repo_id else None
