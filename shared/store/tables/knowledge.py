"""What is known."""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from shared.store.row import Changing, Json, Time, Versioned, Whole, now

MemoryKind = Literal["turn", "fact", "entity", "strategy", "goal"]


class Note(Versioned):
    """A note of a project, in markdown."""

    table = "notes"
    searched = ("title", "body")
    scopes = ("project_id",)
    unique = (("project_id", "slug"),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    slug: str
    title: str
    body: str = ""
    origin: Json = {}


class ProjectProfile(Versioned):
    """What is understood of a project: architecture, conventions, decisions, pitfalls, in markdown."""

    table = "project_profiles"
    searched = ("", "body")
    scopes = ("project_id",)
    unique = (("project_id",),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    body: str = ""
    origin: Json = {}


class Prompt(Versioned):
    """A prompt template of a project."""

    table = "prompts"
    unique = (("project_id", "name"),)
    belongs = {"project_id": "projects"}

    project_id: UUID
    name: str
    category: str = ""
    tags: list[str] = []
    description: str = ""
    variables: list[Json] = []
    body: str = ""
    origin: Json = {}


class Memory(Changing):
    """Something to recall. A correction does not overwrite: it sets `valid_to` and `superseded_by`."""

    table = "memories"
    searched = ("subject", "body", "context")
    scopes = ("project_id", "scope")
    index = (("project_id", "kind"), ("session_id",), ("kind", "created_at"))

    kind: MemoryKind
    scope: Literal["global", "project"] = "project"
    project_id: UUID | None = None
    session_id: str | None = None
    user_id: str | None = None
    subject: str = ""
    body: str
    context: str = ""
    confidence: float = 0.7
    salience: float = 0.5
    uses: Whole = 0
    successes: Whole = 0
    valid_from: Time = Field(default_factory=now)
    valid_to: Time | None = None
    superseded_by: UUID | None = None
    used_at: Time | None = None
    source: str | None = None  # the turn or note that it came from
    detail: Json = {}
    embedding: list[float] | None = None
    archived: bool = False
    origin: Json = {}
