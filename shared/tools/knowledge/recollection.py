"""Category recollection: what is remembered of the person, looked at, corrected and forgotten."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.memory import editing, scope
from shared.store.origin import marked
from shared.store.records import Memory, MemoryKind
from shared.tools import lookup
from shared.tools.context import Context
from shared.tools.registry import Category, Result

category = Category("recollection", "What is remembered of the person: list, correct, forget")

_Text = Annotated[str, Field(min_length=1, max_length=8_000)]


def _id(arguments: dict[str, Any]) -> str:
    return str(arguments.get("memory_id") or "")


def _person(here: Context) -> str:
    person = here.owner[0]
    if not person:
        raise ToolError("nobody's memory is meant", "no person stands behind this turn", "ask the person to")
    return person


async def _named(here: Context, memory_id: str) -> Memory:
    return await editing.named(here.store, _person(here), memory_id)


@category.tool(effect="pure", touches=touching("records"))
async def list_memories(
    here: Context,
    kind: MemoryKind | None = None,
    project_id: str | None = None,
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
) -> Result:
    """What is remembered of the person, newest first: facts, entities, strategies, goals, and what was said (turn)."""
    project = await lookup.project(here.store, project_id) if project_id else None
    place = project.id if project else None
    rows = await editing.listed(here.store, _person(here), kind=kind, project=place, limit=limit)
    return {"memories": [await editing.card(here.store, row) for row in rows], **marked(rows)}


@category.tool(effect="pure", detail=_id, touches=touching("records"))
async def show_memory(here: Context, memory_id: str) -> Result:
    """One memory of the person, with where it comes from and what became of it."""
    return await editing.card(here.store, await _named(here, memory_id))


@category.tool(effect="idempotent", detail=_id, touches=touching("records"))
async def correct_memory(here: Context, memory_id: str, text: _Text) -> Result:
    """Put other words in the place of a memory of the person; the old one ends, and is not recalled any more."""
    row = await _named(here, memory_id)
    if row.kind == "turn":
        why = "a turn is what was said, and nobody can have said anything else"
        raise ToolError("what was said cannot be corrected", why, "correct the fact, or forget the turn")
    if row.valid_to is not None and not await _ours(here, row):
        raise ToolError("it was corrected before", "another memory stands in its place", "correct that one")
    new = await editing.correct(here.store, row, text, here.origin, here.step_id or text)
    return {"corrected": str(row.id), "memory_id": str(new.id), "text": new.body}


async def _ours(here: Context, row: Memory) -> bool:
    """Whether this very call corrected it, before its worker died."""
    return bool(here.step_id) and row.superseded_by == editing.corrected_id(row, here.step_id)


@category.tool(effect="idempotent", detail=_id, touches=touching("loss"))
async def forget_memory(here: Context, memory_id: str) -> Result:
    """Delete a memory of the person for good; the conversation in which it was said stays."""
    row = await _named(here, memory_id)
    told = await lookup.removing(here, {"forgotten": str(row.id), "kind": row.kind, "text": row.body[:200]})
    await editing.forget(here.store, row)
    return told


@category.tool(
    effect="idempotent",
    detail=lambda arguments: str(arguments.get("project_id") or ""),
    personal=True,
    touches=touching("permission"),
)
async def share_memory(here: Context, project_id: str, on: bool = True) -> Result:
    """Let all who work in a project recall what is remembered there, or end that. For people alone."""
    person, project = here.need_person(), await lookup.project(here.store, project_id)
    if project.slug == scope.DEFAULT:
        why = "it holds what is remembered of people everywhere"
        raise ToolError("the memory of the default project cannot be shared", why, "share that of a project")
    await scope.share(here.store, project.slug, on, person)
    return {"project_id": project.slug, "shared": on}
