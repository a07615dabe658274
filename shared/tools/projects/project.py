"""Tools of category project: make, find, change, pause and delete projects; which one is active."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from shared.errors import Conflict, ToolError
from shared.guard.files import roots
from shared.guard.git.commands import Git, check_ref
from shared.guard.permissions.touching import touching
from shared.store.records import (
    Channel,
    Project,
    Repo,
    TaskEvent,
    derived,
)
from shared.tools import checkouts, lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.detail import PLACE, dollars, place, words
from shared.tools.projects import channels
from shared.tools.projects.repositories import opened_at
from shared.tools.registry import Result

category = tier("project")

ProjectName = Annotated[str, Field(min_length=1, max_length=100)]
Weight = Annotated[float, Field(gt=0, le=1000)]
Agents = Annotated[int, Field(ge=1, le=100)]


def _project(arguments: dict[str, Any]) -> str:
    return str(arguments.get("project_id") or "")


def _new(arguments: dict[str, Any]) -> str:
    """The project, and where its repository is."""
    return words(lookup.kebab(str(arguments.get("name", ""))), place(arguments.get("repo_url")))


def _edited(arguments: dict[str, Any]) -> str:
    """The project, and a budget where one is given."""
    budget = arguments.get("budget_limit", "")
    return words(_project(arguments), *(("budget", dollars(budget)) if budget != "" else ()))


@category.tool(effect="pure", touches=touching("records"))
async def list_projects(here: Context) -> Result:
    """List all projects in the system."""
    await lookup.project(here.store, lookup.DEFAULT)
    linked = {
        row.project_id: row.channel_id
        for row in await here.store.select(Channel, {"surface": channels.DISCORD})
    }
    return {
        "projects": [
            {
                "id": row.slug,
                "name": row.name,
                "status": row.status,
                "description": row.description,
                "credit_weight": row.credit_weight,
                "max_concurrent_agents": row.max_concurrent_agents,
                "workspace": row.workspace,
                "default_branch": row.default_branch,
                **({"discord_channel_id": linked[row.id]} if row.id in linked else {}),
            }
            for row in await here.store.select(Project, order=[("slug", "asc")])
        ],
        "active_project": here.project_id,
    }


@category.tool(
    effect="keyed",
    detail=_new,
    touches=touching("records", repo_url=PLACE),
)
async def create_project(
    here: Context,
    name: ProjectName,
    credit_weight: Weight = 1.0,
    max_concurrent_agents: Agents = 2,
    repo_url: str | None = None,
    default_branch: str | None = None,
    auto_create_channels: bool = False,
) -> Result:
    """Create a new project, with a folder of its own; `repo_url` also registers its repository.

    `default_branch` is that of its repositories which have it; by default each keeps its own.
    """
    slug = lookup.kebab(name)
    if not slug:
        raise ToolError(f"{name!r} is no name for a project", "it has no letter or digit", "choose another")
    place = checkouts.folder_of(here, slug)
    row = Project(
        slug=slug,
        name=name.strip(),
        credit_weight=credit_weight,
        max_concurrent_agents=max_concurrent_agents,
        default_branch=check_ref(default_branch or "main"),
        workspace=str(place) if place else None,
    )
    await _made_here(here, row)
    # Before anything is written: a place that is refused leaves no project behind.
    repo = await _repository(here, row, repo_url) if repo_url else None
    await _insert(here, row)
    if place:
        await asyncio.to_thread(place.mkdir, parents=True, exist_ok=True)
    result: Result = {"created": slug, "name": row.name, "workspace": row.workspace}
    result["auto_create_channels"] = auto_create_channels
    if repo:
        await here.store.upsert([repo])
        result |= {"repo": repo.name, "default_branch": repo.default_branch}
        if default_branch and repo.default_branch != default_branch:
            result["warning"] = f"{repo.name} has no branch {default_branch!r}: its own is used"
    if auto_create_channels:
        result["warning"] = (
            "no channel was made: nothing here may make channels; link one: set_project_channel"
        )
    return result


async def _repository(here: Context, project: Project, place: str) -> Repo:
    """The row of a new project's repository, with who adds it and what was read for that."""
    if known := await checkouts.registered(here, project, place, ""):
        return known
    row = await opened_at(here, checkouts.repos(here), project, place, None)
    row = await checkouts.branched(here, project, row)
    return row.model_copy(update={"origin": here.origin.kept()})


def _mark(here: Context, row: Project) -> UUID:
    return derived("project-event", here.step_id or str(lookup.identity(here)), row.slug, "created")


async def _made_here(here: Context, row: Project) -> bool:
    """Whether this very step made it before a crash; ToolError where another made one of that name."""
    if not await lookup.first(here.store, Project, id=row.id):
        return False
    if await lookup.first(here.store, TaskEvent, id=_mark(here, row)):
        return True
    raise ToolError(f"there is a project {row.slug!r} already", "names must differ", "choose another name")


async def _insert(here: Context, row: Project) -> None:
    """Write a new project. The event says which step made it, so that a replay knows its own."""
    if await _made_here(here, row):
        return
    mark = _mark(here, row)
    await here.store.upsert([lookup.project_event(here, row, mark, "created")])
    try:
        await here.store.insert(row)
    except Conflict:
        raise ToolError(f"there is a project {row.slug!r} already", "", "choose another name") from None


@category.tool(effect="idempotent", detail=_project, touches=touching("records"))
async def pause_project(here: Context, project_id: str) -> Result:
    """Pause a project so no new tasks are scheduled. Tasks that run go on."""
    row = await lookup.project(here.store, project_id)
    if row.status != "PAUSED":
        await lookup.project_changed(here, row, "paused")
        row = await lookup.change(here.store, row, status="PAUSED")
    return {"paused": row.slug, "name": row.name}


@category.tool(effect="idempotent", detail=_project, touches=touching("records"))
async def resume_project(here: Context, project_id: str) -> Result:
    """Resume a paused or archived project."""
    row = await lookup.project(here.store, project_id)
    if row.status != "ACTIVE":
        await lookup.project_changed(here, row, "resumed")
        row = await lookup.change(here.store, row, status="ACTIVE")
    return {"resumed": row.slug, "name": row.name}


@category.tool(
    effect="idempotent",
    detail=_edited,
    touches=touching("records", budget_limit="money", default_profile_id="permission"),
)
async def edit_project(
    here: Context,
    project_id: str,
    name: ProjectName | None = None,
    credit_weight: Weight | None = None,
    max_concurrent_agents: Agents | None = None,
    budget_limit: Annotated[float, Field(ge=0, le=1_000_000)] | Literal[""] | None = "",
    discord_channel_id: str | None = "",
    default_profile_id: str | None = "",
    repo_default_branch: str | None = None,
    description: Annotated[str, Field(max_length=2000)] | None = None,
) -> Result:
    """Edit a project: only what is given changes. `budget_limit` is dollars; null clears it, a channel, a profile."""
    row = await lookup.project(here.store, project_id)
    plain = {
        "name": name,
        "description": description,
        "credit_weight": credit_weight,
        "max_concurrent_agents": max_concurrent_agents,
    }
    changes: dict[str, Any] = {key: value for key, value in plain.items() if value is not None}
    if budget_limit != "":
        changes["budget"] = budget_limit
    if default_profile_id != "":
        chosen = (await lookup.profile(here.store, default_profile_id)).id if default_profile_id else None
        changes["default_profile_id"] = chosen
    more = [*(["discord_channel_id"] if discord_channel_id != "" else [])]
    more += ["repo_default_branch"] if repo_default_branch else []
    if not changes and not more:
        raise ToolError("nothing is to be changed", "no field was given", "give at least one")
    fields = [*({"budget": "budget_limit"}.get(key, key) for key in changes), *more]
    await lookup.project_changed(here, row, "edited", fields=fields)
    if changes:
        row = await lookup.change(here.store, row, **changes)
    if discord_channel_id != "":
        await channels.link_channel(here, row, discord_channel_id)
    if repo_default_branch:
        await _set_branch(here, row, repo_default_branch)
    return {"updated": row.slug, "fields": fields}


@category.tool(effect="idempotent", detail=_project, touches=touching("records"))
async def set_default_branch(here: Context, project_id: str, branch: str) -> Result:
    """Set (or change) the default git branch for a project, and for its repositories."""
    row, branch = await lookup.project(here.store, project_id), check_ref(branch)
    await lookup.project_changed(here, row, "edited", fields=["default_branch"])
    missing = await _set_branch(here, row, branch)
    result: Result = {"project_id": row.slug, "default_branch": branch}
    return result | ({"warning": f"not there yet in: {', '.join(missing)}"} if missing else {})


async def _set_branch(here: Context, project: Project, branch: str) -> list[str]:
    """The repositories on this home that have no such branch."""
    check_ref(branch)
    await lookup.change(here.store, project, default_branch=branch)
    missing = []
    for repo in await here.store.update(Repo, {"default_branch": branch}, {"project_id": project.id}):
        if repo.path and repo.home == _home(here):
            git = Git(roots.opened(repo.name, repo.path, checkouts.repos(here).home), checkouts.sandbox(here))
            if not git.is_repo() or not await git.commit_of(branch):
                missing.append(repo.name)
    return missing


def _home(here: Context) -> str | None:
    return here.repos.home_id if here.repos else None


@category.tool(effect="idempotent", detail=_project, touches=touching("records"))
async def set_active_project(here: Context, project_id: str | None = None) -> Result:
    """Set the active project of this conversation, from the next call on; without a project_id it is cleared."""
    if here.roots:
        raise ToolError(
            "the active project cannot be changed here",
            f"this work began in project {here.project_id!r}, whose repositories are open",
            "only the conversation with the person can change it; here, name the project_id in each call",
        )
    row = await lookup.project(here.store, project_id) if project_id else None
    scope = lookup.session_scope(here)
    await lookup.keep_setting(here.store, scope, lookup.ACTIVE, {"project": row.slug if row else None})
    now = row or await lookup.project(here.store, lookup.DEFAULT)
    rows = await here.store.select(Repo, {"project_id": now.id}, order=[("name", "asc")])
    result: Result = {"active_project": row.slug if row else None, "name": row.name if row else None}
    result |= {"repositories": [repo.name for repo in rows]}
    return result | {"conversation": scope.removeprefix("session:")}
