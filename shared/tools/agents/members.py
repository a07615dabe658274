"""Category members: what an agent that is a row is made of, changed and destroyed."""

from __future__ import annotations

import contextlib
from typing import Any

from shared.errors import Conflict, PromptDockError, ToolError
from shared.guard.permissions.touching import touching
from shared.store.records import Agent, Channel, ProfileRow
from shared.store.row import now
from shared.store.sections import Section
from shared.tools import checkouts, lookup
from shared.tools.agents import own, profiles, shape, workspace
from shared.tools.agents.prompt import category
from shared.tools.agents.shape import ProfileLimits
from shared.tools.context import Context
from shared.tools.detail import digest, words
from shared.tools.registry import Result

SURFACE = "promptdock"  # of the channel that each agent has in our own surfaces
_OWN_FILES = ["create_file", "str_replace", "view", "bash", "install_packages"]
_CODING = [
    *_OWN_FILES, "list_directory", "grep", "escalate_to_human",
    "self_edit_system_prompt", "self_edit_docs", "self_edit_permissions", "self_edit_model",
]  # fmt: skip
_NAMES = 100  # ids of profiles that are tried, where that of the agent's name is taken


def _detail(arguments: dict[str, Any]) -> str:
    return str(arguments.get("agent_id") or "")


def _changed(arguments: dict[str, Any]) -> str:
    return words(_detail(arguments), digest(arguments))


async def profile_for(here: Context, name: str, given: profiles.NewProfile, old: Agent | None) -> ProfileRow:
    """The profile that a new agent works by: written now, or that of an agent of this name before."""
    kept = await lookup.first(here.store, ProfileRow, id=old.profile_id) if old and old.profile_id else None
    if kept is not None:
        changes = given.changes()
        if not changes:
            return kept
        shape.check(kept.model_copy(update=changes), here.registry)
        origin = here.origin.over(kept.origin).kept()
        return await lookup.change(here.store, kept, **changes, origin=origin)
    row = ProfileRow(
        id=lookup.identity(here, "profile"), slug=name, origin=here.origin.kept(), **_fields(name, given)
    )
    shape.check(row, here.registry)
    for number in range(2, _NAMES):
        taken = await lookup.first(here.store, ProfileRow, slug=row.slug)
        if taken is None or taken.id == row.id:
            break
        row = row.model_copy(update={"slug": f"{name[:60]}-{number}"})
    await profiles.insert(here, row)
    return row


def _fields(name: str, given: profiles.NewProfile) -> dict[str, Any]:
    """What a new profile says, with what it says where nothing was given."""
    sections = profiles.kept_sections([persona(name)])
    fields: dict[str, Any] = {"sections": sections, "name": persona_name(name), **given.changes()}
    coding = fields.get("kind") == "coding"
    if not fields.get("tools") and not fields.get("categories"):
        fields["tools"] = _CODING if coding else [shape.EVERYTHING, *_OWN_FILES]
    if coding:  # as the shipped ones that work on tasks
        fields = {"permission_profile": "builder", "max_tokens": 16000, "limits": {"turns": 1}} | fields
    return fields


def persona_name(name: str) -> str:
    """How people call an agent of this name."""
    return name.replace("-", " ").title()


async def rename(here: Context, row: Agent, name: str) -> None:
    """Take along what goes by an agent's name: its channels, its own edits, its folder."""
    await here.store.update(Channel, {"agent": name}, {"agent": row.name})
    mine = await lookup.first(here.store, ProfileRow, slug=own.slug(row.name))
    if mine is not None and await lookup.first(here.store, ProfileRow, slug=own.slug(name)) is None:
        await here.store.update(ProfileRow, {"slug": own.slug(name)}, {"id": mine.id})
    if here.repos and row.home == here.repos.home_id:
        home = here.repos.home
        await workspace.move(home, row.name, name)
        if row.workspace == str(workspace.folder(home, row.name)):
            await here.store.update(Agent, {"workspace": str(workspace.folder(home, name))}, {"id": row.id})


def persona(name: str, text: str = "") -> Section:
    """What an agent is told that it is, where nobody says more."""
    return Section(name="persona", text=text or f"You are {persona_name(name)}, an agent of this cluster.")


async def make_workspace(here: Context, name: str, about: str) -> tuple[str | None, str | None]:
    """The home and the folder of a new agent; nothing where this turn has no home."""
    if here.repos is None:
        return None, None
    folder = await workspace.make(here.repos.home, checkouts.sandbox(here), name, about)
    return here.repos.home_id, str(folder)


@category.tool(
    effect="idempotent",
    detail=_changed,
    touches=touching("agent", permission_mode="permission", budget="money"),
)
async def configure_agent(
    here: Context,
    agent_id: str,
    description: profiles.ProfileText | None = None,
    system_prompt: profiles.ProfileText | None = None,
    sections: profiles.Sections | None = None,
    model: str | None = None,
    permission_mode: str | None = None,
    tools: profiles.Tools | None = None,
    categories: profiles.Tools | None = None,
    limits: ProfileLimits | None = None,
    budget: profiles.Dollars | None = None,
    profile_id: str | None = None,
) -> Result:
    """Change an agent that is a row, from its next turn on: its profile's fields, or which profile it works by."""
    row = await _row(here, agent_id)
    if profile_id is not None:
        kept = await lookup.profile(here.store, profile_id)
        await here.store.update(Agent, {"profile_id": kept.id}, {"id": row.id})
        row = row.model_copy(update={"profile_id": kept.id})
    parts = [persona(row.name, system_prompt)] if system_prompt else sections
    given = (description, parts, model, permission_mode, tools, categories, limits, budget)
    if all(one is None for one in given):
        if profile_id is None:
            raise ToolError("nothing is to be changed", "no field was given", "give at least one")
        return {"configured": row.name, "profile_id": profile_id, "fields": ["profile_id"]}
    slug = await _profile_of(here, row)
    told = await profiles.edit_profile(
        here, slug, description=description, model=model, permission_mode=permission_mode, allowed_tools=tools,
        sections=parts, categories=categories, limits=limits, budget=budget,
    )  # fmt: skip
    more = ["profile_id"] if profile_id is not None else []
    return {"configured": row.name, "profile_id": slug, "fields": [*more, *told["fields"]]} | (
        {"warning": told["warning"]} if "warning" in told else {}
    )


@category.tool(effect="idempotent", detail=_detail, touches=touching("agent", "loss"))
async def destroy_agent(here: Context, agent_id: str, keep_files: bool = True) -> Result:
    """End an agent that is a row: it works no more, its channels are Chatter's again. Its files stay if asked."""
    if here.intended is None:  # else it was destroyed before a crash
        row = await _row(here, agent_id)
    else:
        row = await lookup.agent(here.store, agent_id)
    if not keep_files and here.repos:
        workspace.need_ours(here.repos.home, row.name)
    channels = await here.store.select(Channel, {"agent": row.name})
    told = {
        "destroyed": row.name,
        "files_kept": keep_files,
        "workspace": row.workspace if keep_files else None,
        "channels": [f"{one.surface}:{one.channel_id}" for one in channels],
    }
    told = await lookup.removing(here, told)
    await here.store.update(Channel, {"agent": None}, {"agent": row.name})
    if row.destroyed_at is None:
        await here.store.update(Agent, {"destroyed_at": now()}, {"id": row.id})
    if not keep_files:
        told |= await _clear(here, row)
    if here.cluster is not None:
        with contextlib.suppress(PromptDockError):
            await here.cluster.forget(row.name)
    return told


async def _clear(here: Context, row: Agent) -> Result:
    """Its files, its own edits, and the profile that was made with it."""
    mine = await lookup.first(here.store, ProfileRow, slug=own.slug(row.name))
    if mine is not None:
        await here.store.delete(ProfileRow, {"id": mine.id})
    made = await lookup.first(here.store, ProfileRow, slug=row.name)
    users = await here.store.select(Agent, {"profile_id": made.id, "destroyed_at": None}) if made else []
    if made is not None and made.id == row.profile_id and not users:
        await here.store.delete(ProfileRow, {"id": made.id})
    if here.repos is None or row.home != here.repos.home_id:
        return (
            {"warning": f"its files lie on another machine ({row.home}) and stay there"} if row.home else {}
        )
    await workspace.remove(here.repos.home, row.name)
    return {}


async def _row(here: Context, name: str) -> Agent:
    row = await lookup.agent(here.store, name)
    if row.destroyed_at is not None:
        raise ToolError(f"the agent {name!r} was destroyed", "", "make it again with create_agent")
    if row.profile_id is None:
        raise ToolError(
            f"the agent {name!r} has no profile of its own here",
            "it is a folder or another program",
            "edit its folder, or let it change itself",
        )
    return row


async def _profile_of(here: Context, row: Agent) -> str:
    kept = await lookup.first(here.store, ProfileRow, id=row.profile_id)
    if kept is None:
        raise Conflict(f"the profile of {row.name} is gone", "it was deleted", "give it one with profile_id")
    users = await here.store.select(Agent, {"profile_id": kept.id, "destroyed_at": None}, limit=5)
    if others := [one.name for one in users if one.id != row.id]:
        raise ToolError(
            f"the profile {kept.slug!r} is not {row.name}'s alone",
            f"{', '.join(others)} work by it too",
            "edit_profile changes it for all; or give this agent another profile_id",
        )
    return kept.slug
