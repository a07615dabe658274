"""Where the work happens."""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import model_validator

from shared.store.row import Changing, Json, Time, Versioned, Whole, derived

ProjectStatus = Literal["ACTIVE", "PAUSED", "ARCHIVED"]
RepoKind = Literal["frontend", "backend", "both"]


def project_key(slug: str) -> UUID:
    """The id of the project of that slug: known without asking the Store."""
    return derived("project", slug)


class Project(Versioned):
    """`slug` is the id that people and models use; the row's id follows from it."""

    table = "projects"
    unique = (("slug",),)

    slug: str
    name: str
    status: ProjectStatus = "ACTIVE"
    description: str = ""
    credit_weight: float = 1.0
    max_concurrent_agents: Whole = 2
    budget: float | None = None  # dollars
    default_branch: str = "main"
    default_profile_id: UUID | None = None
    workspace: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _keyed(cls, data: Any) -> Any:
        if isinstance(data, dict) and "id" not in data and isinstance(data.get("slug"), str):
            return {**data, "id": project_key(data["slug"])}
        return data


class Repo(Changing):
    """A repository: one with a url, or a path that is linked on one home."""

    table = "repos"
    unique = (("project_id", "name"),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    name: str
    kind: RepoKind = "both"
    url: str | None = None
    path: str | None = None
    home: str | None = None
    default_branch: str = "main"
    push_tasks: bool = False
    origin: Json = {}


class Workspace(Versioned):
    """A checkout on one home; while `lease_until` is ahead, the task in `task_id` has it to itself."""

    table = "workspaces"
    unique = (("project_id", "name"),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    repo_id: UUID | None = None
    name: str
    source: Literal["clone", "link", "worktree"] = "clone"
    path: str
    home: str | None = None
    branch: str | None = None
    agent: str | None = None
    task_id: UUID | None = None
    epoch: Whole = 0
    lease_until: Time | None = None
    origin: Json = {}


class Channel(Changing):
    """A channel of a surface, bound to a project, a notes thread or an agent of its own."""

    table = "channels"
    unique = (("surface", "channel_id"),)
    index = (("project_id",),)

    surface: str
    channel_id: str
    name: str = ""
    project_id: UUID | None = None
    note: str | None = None
    agent: str | None = None
