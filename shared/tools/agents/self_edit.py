"""Category self: an agent changes its own prompt, docs, model or permissions, as far as its person may grant it.

The changes lie in one profile row (`self:<agent>`) over the agent's folder, which stays as it is. Each change is
a version, tells what stood there before, and holds from the agent's next turn on; what is set to nothing is again
what the folder says.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field, ValidationError

from shared import failpoints
from shared.errors import Conflict, ToolError
from shared.guard.permissions import compare
from shared.guard.permissions.presets import Policies
from shared.guard.permissions.touching import touching
from shared.store.base import Store
from shared.store.records import ProfileRow, derived
from shared.tools import lookup
from shared.tools.agents import models, own, profiles
from shared.tools.context import Context, Own
from shared.tools.registry import Category, Result

category = Category("self", "Change yourself: your prompt, docs, model and permissions")

PROMPT, DOC = "prompt", "docs/"  # names of sections
DOCS, ALL_DOCS = 50, 50_000  # pages, and characters of all of them: they are part of every request

PromptText = Annotated[str, Field(max_length=50_000)]
Page = Annotated[str, Field(min_length=1, max_length=200)]
Rules = Annotated[list[Annotated[str, Field(min_length=1, max_length=2000)]], Field(max_length=100)]
PromptChanges = dict[str, Any]
_MODEL = re.compile(r"[\w./:@,-]{1,200}", re.ASCII)
_PAGE = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*){0,4}", re.ASCII)


def _digest(text: Any) -> str:
    return hashlib.sha256(str(text).encode("utf-8", "replace")).hexdigest()[:12]


def _rules(arguments: dict[str, Any]) -> str:
    """With every rule in it: a standing permission for one set of rules must not hold for another."""
    rules = {kind: arguments[kind] for kind in ("deny", "allow", "ask") if arguments.get(kind)}
    return f"permissions:{arguments.get('new_profile')}" + (f" {json.dumps(rules)}" if rules else "")


async def _possible(here: Context, **arguments: Any) -> None:
    """Before anybody is asked for permission: who may not grant a change need not be asked for it."""
    mine = _own(here)
    if "new_profile" in arguments:
        row = await lookup.first(here.store, ProfileRow, slug=own.slug(here.agent))
        wanted = await _wanted(here, mine, **arguments)
        _need_grant(mine, own.permissions(row, mine.folder) if row else mine.folder, wanted)


def _own(here: Context) -> Own:
    if here.agent in ("", "person"):
        raise ToolError("only an agent can change itself", "", "ask the agent to do it")
    return own.own(here)


@category.tool(
    effect="idempotent",
    ready=_possible,
    detail=lambda arguments: f"prompt:{_digest(arguments.get('new_prompt'))}",
    touches=touching("agent"),
)
async def self_edit_system_prompt(here: Context, new_prompt: PromptText) -> Result:
    """Replace your own system prompt from your next turn on; an empty one brings back the shipped one."""
    return await _section(here, _own(here), PROMPT, new_prompt)


@category.tool(
    effect="idempotent",
    ready=_possible,
    detail=lambda arguments: f"docs:{arguments.get('path')}:{_digest(arguments.get('content'))}",
    touches=touching("agent"),
)
async def self_edit_docs(here: Context, path: Page, content: PromptText) -> Result:
    """Write a page of your own docs, which are part of your prompt; empty content removes it."""
    mine = _own(here)
    if not _PAGE.fullmatch(path):
        raise ToolError(
            f"{path!r} is no name for a page", "letters, digits, - . _ and / between", "name it so"
        )
    return await _section(here, mine, f"{DOC}{path}", content)


@category.tool(
    effect="idempotent",
    ready=_possible,
    detail=lambda arguments: f"model:{arguments.get('new_model')}",
    touches=touching("agent"),
)
async def self_edit_model(here: Context, new_model: Annotated[str, Field(max_length=200)]) -> Result:
    """Switch the model you think with, from your next turn on; an empty name brings back the shipped one."""
    mine = _own(here)
    if mine.fixed_model:
        raise ToolError("the model cannot be changed here", mine.fixed_model, "change that instead")
    if new_model and not _MODEL.fullmatch(new_model):
        raise ToolError(f"{new_model[:100]!r} is no name of a model", "", "name it as its provider does")
    new_model = await models.need(here, new_model, later=True) if new_model else ""
    return await _keep(here, mine, "model", lambda row: (row.model, {"model": new_model or None}))


@category.tool(effect="idempotent", ready=_possible, detail=_rules, touches=touching("permission"))
async def self_edit_permissions(
    here: Context,
    new_profile: Annotated[str, Field(max_length=100)],
    deny: Rules | None = None,
    allow: Rules | None = None,
    ask: Rules | None = None,
) -> Result:
    """Change your own permissions from your next turn on: a preset or a profile's id, with rules before it.

    An empty name brings back the shipped ones. What may allow you more needs a person who may grant it.
    """
    mine = _own(here)
    wanted = await _wanted(here, mine, new_profile, deny, allow, ask)
    if mine.fixed_permissions:
        raise ToolError(
            "the permissions cannot be changed here", mine.fixed_permissions, "change that instead"
        )

    def changed(row: ProfileRow) -> tuple[Any, PromptChanges]:
        now = own.permissions(row, mine.folder)  # as they are, not as they were when this turn began
        _need_grant(mine, now, wanted)
        kept = {} if wanted == mine.folder else wanted.model_dump()
        return now.model_dump(), {"permissions": kept, "permission_profile": wanted.preset or "locked"}

    return await _keep(here, mine, "permissions", changed)


def _need_grant(mine: Own, now: Policies, wanted: Policies) -> None:
    if (why := compare.wider(now, wanted)) and not (mine.approver or failpoints.without("self-edits")):
        raise ToolError(
            f"{mine.person} may not grant this",
            f"{why}, and they have none of APPROVER_ROLES",
            "ask someone who has one, or ask for less",
        )


async def _wanted(
    here: Context,
    mine: Own,
    new_profile: str,
    deny: list[str] | None = None,
    allow: list[str] | None = None,
    ask: list[str] | None = None,
) -> Policies:
    rules = {"deny": deny or [], "allow": allow or [], "ask": ask or []}
    if not new_profile:
        if any(rules.values()):
            raise ToolError("rules need a profile behind them", "new_profile is empty", "name one")
        return mine.folder
    base: PromptChanges = {"preset": new_profile}
    if new_profile not in profiles.MODES:
        row = await lookup.first(here.store, ProfileRow, slug=new_profile)
        if row is None or new_profile.startswith(own.PREFIX):
            raise ToolError(
                f"there is no permission profile {new_profile!r}",
                f"the presets are: {', '.join(profiles.MODES)}",
                "name one of them, or the id of a profile",
            )
        base = {"preset": row.permission_profile, **row.permissions}
        rules = {kind: [*own_rules, *base.get(kind, [])] for kind, own_rules in rules.items()}
    try:
        minutes = mine.folder.approval_minutes
        return Policies.model_validate({**base, **rules, "approval_minutes": minutes})
    except ValidationError as error:
        raise ToolError("these permissions cannot be used", str(error.errors()[0]["msg"])[:500]) from None


async def _section(here: Context, mine: Own, name: str, text: str) -> Result:
    def changed(row: ProfileRow) -> tuple[Any, PromptChanges]:
        old = next((part.get("text") for part in row.sections if part.get("name") == name), None)
        kept = [part for part in row.sections if part.get("name") != name]
        if text:
            kept.append({"name": name, "text": text, "enabled": True})
        docs = [part["text"] for part in kept if part["name"].startswith(DOC)]
        if len(docs) > DOCS or sum(map(len, docs)) > ALL_DOCS:
            raise ToolError(
                "your docs are full",
                f"at most {DOCS} pages and {ALL_DOCS} characters together",
                "remove a page, or write less",
            )
        return old, {"sections": kept}

    return await _keep(here, mine, name, changed)


async def _keep(
    here: Context, mine: Own, what: str, changed: Callable[[ProfileRow], tuple[Any, PromptChanges]]
) -> Result:
    """Write a change as a new version, and tell all workers of this agent."""
    row = await _row(here.store, here.agent)
    if here.intended is not None and here.intended.get("version") == row.version:
        told = dict(here.intended)  # it was done before a crash
    else:
        before, changes = changed(row)
        told = {
            "updated": here.agent,
            "field": what,
            "version": row.version + 1,
            "before": before,
            "message": "it holds from your next turn on",
        }
        await here.intend(told)
        origin = here.origin.over(row.origin if row.sections else here.origin.kept())
        await lookup.change(here.store, row, **changes, origin=origin.kept())
    await mine.tell(here.agent)
    return told


async def _row(store: Store, agent: str) -> ProfileRow:
    slug = own.slug(agent)
    if found := await lookup.first(store, ProfileRow, slug=slug):
        return found
    row = ProfileRow(id=derived("profile", slug), slug=slug, name=f"{agent}, as it changed itself")
    try:
        await store.insert(row)
    except Conflict:  # another worker was first
        return await lookup.profile(store, slug)
    return row
