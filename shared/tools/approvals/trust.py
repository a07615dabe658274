"""Category permissions: a person says that what was read is to be trusted. No model is shown it, none may call it.

What is made in a turn that has read what others wrote bears a mark, and hands it on. Only here it is taken off.
"""

from __future__ import annotations

from typing import Any, Literal

from shared.errors import Missing
from shared.guard.permissions.touching import touching
from shared.hooks import permission
from shared.store.origin import Origin
from shared.store.records import (
    Hook,
    Memory,
    Note,
    ProfileRow,
    ProjectProfile,
    Prompt,
    Repo,
    Row,
    Task,
    TaskResult,
    Workspace,
)
from shared.tools import lookup
from shared.tools.context import Context
from shared.tools.registry import Category, Result

category = Category("permissions", "Trust what was read, and end permissions that people gave for good")

What = Literal[
    "conversation",
    "task",
    "note",
    "hook",
    "profile",
    "prompt",
    "memory",
    "project_profile",
    "repo",
    "workspace",
]
CONVERSATION: What = "conversation"
_KINDS: dict[str, type[Row]] = {
    "task": Task,
    "hook": Hook,
    "profile": ProfileRow,
    "note": Note,
    "prompt": Prompt,
    "memory": Memory,
    "project_profile": ProjectProfile,
    "repo": Repo,
    "workspace": Workspace,
}


def _spelled(arguments: dict[str, Any]) -> str:
    return f"{arguments.get('what')} {arguments.get('name') or ''}".strip()


@category.tool(effect="idempotent", detail=_spelled, personal=True, touches=touching("permission"))
async def trust(
    here: Context, what: What = CONVERSATION, name: str = "", project_id: str | None = None
) -> Result:
    """Take the mark of foreign text off this conversation, or off a task with its result, a note, a hook and the like.

    What is read afterwards marks it again.
    """
    person = here.need_person()
    if what == CONVERSATION:
        return {"trusted": CONVERSATION, "by": person}
    found = await _found(here, what, name, project_id)
    marked = [row for row in found if Origin.of(getattr(row, "origin")).foreign]  # noqa: B009 - a union of rows
    for row in marked:
        kept = Origin.of(getattr(row, "origin")).trusted().kept()  # noqa: B009
        await here.store.update(type(row), {"origin": kept}, {"id": row.id})
    if what == "profile" and here.own:
        await here.own.tell(name.removeprefix("self:"))
    return {"trusted": f"{what} {name}".strip(), "by": person, "rows": len(marked)}


@category.tool(
    effect="idempotent",
    detail=lambda arguments: str(arguments.get("hook_id") or ""),
    personal=True,
    touches=touching("permission"),
)
async def allow_hook(here: Context, hook_id: str) -> Result:
    """Allow the steps of a hook exactly as they are now, so that its runs take them."""
    person = here.need_person()
    row = await lookup.hook(here.store, hook_id)
    project = (await lookup.projects(here.store)).get(row.project_id, "")
    if permission.granted_by(row, project) != person:
        row = await lookup.change(
            here.store, row, allowed=permission.grant(person, row.context_steps, project)
        )
    return {"allowed": row.slug, "by": person, "context_steps": row.context_steps}


async def _found(here: Context, what: str, name: str, project_id: str | None) -> list[Row]:
    """The rows that are meant; Missing where there are none."""
    project = await lookup.project(here.store, project_id or here.project_id)
    wheres: dict[str, dict[str, Any]] = {
        "task": {"slug": name},
        "hook": {"slug": name},
        "profile": {"slug": name},
        "note": {"project_id": project.id, "slug": lookup.note_slug(name) if what == "note" else ""},
        "prompt": {"project_id": project.id, "name": name},
        "memory": {"project_id": project.id, "subject": name},
        "project_profile": {"project_id": project.id},
        "repo": {"project_id": project.id, "name": name},
        "workspace": {"project_id": project.id, "name": name},
    }
    found: list[Row] = list(await here.store.select(_KINDS[what], wheres[what]))
    if not found:
        raise Missing(f"there is no {what.replace('_', ' ')} {name!r}", f"in project {project.slug}", "")
    if what == "task":
        found += await here.store.select(TaskResult, {"task_id": found[0].id})
    return found
