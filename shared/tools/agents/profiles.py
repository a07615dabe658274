"""Tools of category agent: agent profiles as rows, and what their tools and servers may be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from shared.errors import Conflict, ToolError
from shared.guard.permissions.touching import touching
from shared.store.origin import marked
from shared.store.records import Agent, ProfileKind, ProfileRow, Project, Task
from shared.store.sections import Section
from shared.tools import lookup
from shared.tools.agents import models, own, shape
from shared.tools.agents.shape import ProfileLimits
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.detail import digest, words
from shared.tools.registry import Result

category = tier("agent")

# Our presets, and what Claude Code calls the same. Its bypassPermissions has no counterpart here.
MODES = ("open", "standard", "guarded", "locked", "builder")
_CLAUDE_MODES = {"default": "standard", "acceptEdits": "builder", "plan": "locked"}
# The tools of Claude Code, by which profiles from elsewhere name them.
CLAUDE_TOOLS = {
    "Read": "Read files", "Write": "Create or overwrite files", "Edit": "Replace text in files",
    "Glob": "Find files by name", "Grep": "Search in files", "Bash": "Run shell commands",
    "WebFetch": "Read a web page", "WebSearch": "Search the web", "NotebookEdit": "Edit Jupyter notebooks",
    "Task": "Start a subagent", "TodoWrite": "Keep a list of what is to be done",
}  # fmt: skip
MCP_SERVERS = {
    "filesystem": ("npx", "@modelcontextprotocol/server-filesystem", "Files below given folders"),
    "memory": ("npx", "@modelcontextprotocol/server-memory", "A knowledge graph that lasts"),
    "sequential-thinking": ("npx", "@modelcontextprotocol/server-sequential-thinking", "Thinking in steps"),
    "playwright": ("npx", "@playwright/mcp", "A browser"),
    "git": ("uvx", "mcp-server-git", "Read and change git repositories"),
    "fetch": ("uvx", "mcp-server-fetch", "Read web pages as text"),
    "time": ("uvx", "mcp-server-time", "Time and time zones"),
}
SUFFIX = shape.SUFFIX

ProfileName = Annotated[str, Field(min_length=1, max_length=200)]
ProfileText = Annotated[str, Field(max_length=50_000)]
Tools = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=300)]
Sections = Annotated[list[Section], Field(max_length=50)]
Dollars = Annotated[float, Field(gt=0)]
Temperature = Annotated[float, Field(ge=0, allow_inf_nan=False)]
AnswerTokens = Annotated[int, Field(ge=1, le=1_000_000)]


class RuleLists(BaseModel):
    """Patterns of actions that stand before those of the permission mode."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    deny: list[str] = []
    allow: list[str] = []
    ask: list[str] = []


def _profile(arguments: dict[str, Any]) -> str:
    return str(arguments.get("profile_id") or arguments.get("id") or "")


def _written(arguments: dict[str, Any]) -> str:
    """With a name for what is written: permission for one change is none for another."""
    return words(_profile(arguments), digest(arguments))


@category.tool(effect="pure", touches=touching("records"))
async def list_profiles(here: Context) -> Result:
    """List all agent profiles."""
    rows = await here.store.select(ProfileRow, order=[("slug", "asc")])
    return {
        "profiles": [
            {
                "id": row.slug,
                "name": row.name,
                "description": row.description,
                "model": row.model,
                "permission_mode": row.permission_profile,
                "tools": len(row.tools),
            }
            for row in rows
        ],
        "message": "the agents that ship with PromptDock have profiles of their own, in their folders",
    }


@category.tool(effect="keyed", detail=_written, touches=touching("permission", budget="money"))
async def create_profile(
    here: Context,
    id: ProfileName,
    name: ProfileName,
    description: ProfileText = "",
    model: str | None = None,
    permission_mode: str | None = None,
    allowed_tools: Tools | None = None,
    mcp_servers: dict[str, Any] | None = None,
    system_prompt_suffix: ProfileText | None = None,
    sections: Sections | None = None,
    categories: Tools | None = None,
    permissions: RuleLists | None = None,
    limits: ProfileLimits | None = None,
    budget: Dollars | None = None,
    temperature: Temperature | None = None,
    max_tokens: AnswerTokens | None = None,
) -> Result:
    """Create a new agent profile. permission_mode is one of open, standard, guarded, locked, builder.

    sections are the prompt's parts in order; without tools and categories everything can be loaded on demand.
    """
    slug = slug_of(id)
    model = await models.kept(here, model)
    models.warm(here, model, temperature)
    row = ProfileRow(
        id=lookup.identity(here, "profile"),
        slug=slug,
        name=name,
        description=description,
        model=model,
        tools=list(allowed_tools or []),
        categories=list(categories or []),
        permission_profile=mode_of(permission_mode or "standard"),
        permissions=kept_rules(permissions),
        mcp_servers=servers_of(mcp_servers or {}),
        sections=_sections(kept_sections(sections), system_prompt_suffix),
        limits=kept_limits(limits),
        budget=budget,
        temperature=temperature,
        max_tokens=max_tokens,
        origin=here.origin.kept(),
    )
    shape.check(row, here.registry)
    await insert(here, row)
    return {"created": slug, "name": name} | unknown(here, row.tools)


@dataclass(frozen=True)
class NewProfile:
    """What a new profile is given, parsed; None is not given."""

    name: str | None = None
    description: str | None = None
    kind: ProfileKind | None = None
    sections: list[Section] | None = None
    model: str | None = None
    permission_mode: str | None = None
    tools: list[str] | None = None
    categories: list[str] | None = None
    budget: float | None = None

    def changes(self) -> dict[str, Any]:
        """As the columns of a row: only what is given."""
        columns = {
            "name": self.name,
            "description": self.description,
            "kind": self.kind,
            "sections": None if self.sections is None else kept_sections(self.sections),
            "model": self.model,
            "permission_profile": mode_of(self.permission_mode) if self.permission_mode else None,
            "tools": self.tools,
            "categories": self.categories,
            "budget": self.budget,
        }
        return {name: value for name, value in columns.items() if value is not None}


def kept_sections(sections: list[Section] | None) -> list[dict[str, Any]]:
    """Sections as a row holds them."""
    return [section.model_dump() for section in sections or []]


def kept_rules(rules: RuleLists | None) -> dict[str, Any]:
    """RuleLists as a row holds them: only those that there are."""
    return {kind: patterns for kind, patterns in rules.model_dump().items() if patterns} if rules else {}


def kept_limits(limits: ProfileLimits | None) -> dict[str, Any]:
    """Limits as a row holds them: only those that were set."""
    return limits.model_dump(exclude_unset=True) if limits else {}


async def insert(here: Context, row: ProfileRow) -> None:
    """Write a new profile; ToolError where its id is taken, unless by this very call before a crash."""
    found = await lookup.first(here.store, ProfileRow, slug=row.slug)
    if found is not None and found.id == row.id:
        return
    try:
        await here.store.insert(row)
    except Conflict:
        raise ToolError(f"there is a profile {row.slug!r} already", "", "choose another id") from None


def slug_of(id: str) -> str:
    """A profile's id as it is written."""
    slug = lookup.kebab(id)
    if not slug or not slug.isascii():
        raise ToolError(f"{id[:100]!r} is no id for a profile", "ids are letters, digits and hyphens", "")
    return slug


def mode_of(mode: str) -> str:
    """The permission profile of that name, ours or Claude Code's."""
    found = _CLAUDE_MODES.get(mode, mode)
    if found not in MODES:
        raise ToolError(
            f"there is no permission mode {mode[:50]!r}", f"there are: {', '.join(MODES)}", "name one of them"
        )
    return found


def servers_of(given: dict[str, Any]) -> dict[str, Any]:
    """MCP servers by name: each has a command with arguments, or an address."""
    for name, server in given.items():
        if not re.fullmatch(r"[\w.-]{1,64}", name) or not isinstance(server, dict):
            raise ToolError(
                f"the MCP server {name[:50]!r} cannot be used", "it has no plain name, or no fields"
            )
        command, url = server.get("command"), server.get("url")
        if bool(command) == bool(url) or not isinstance(command or url, str):
            raise ToolError(
                f"the MCP server {name!r} cannot be used", "it needs a command, or a url, not both"
            )
        arguments = server.get("args", [])
        if not isinstance(arguments, list) or not all(isinstance(word, str) for word in arguments):
            raise ToolError(f"the MCP server {name!r} cannot be used", "args is a list of words")
        if not isinstance(server.get("env", {}), dict):
            raise ToolError(f"the MCP server {name!r} cannot be used", "env holds variables by name")
    return given


def _sections(old: list[dict[str, Any]], suffix: str | None) -> list[dict[str, Any]]:
    if suffix is None:
        return old
    kept = [section for section in old if section.get("name") != SUFFIX]
    return [*kept, {"name": SUFFIX, "text": suffix, "enabled": True}] if suffix else kept


def unknown(here: Context, tools: list[str]) -> Result:
    """A warning that names the tools of Claude Code that are none of ours: our loop does without them."""
    names = here.registry
    if names is None:
        return {}
    theirs = [tool for tool in tools if tool.partition("(")[0] in CLAUDE_TOOLS]
    missing = [tool for tool in theirs if tool.partition("(")[0] not in shape.ALIASES and tool not in names]
    told = ", ".join(missing[:20])
    return (
        {"warning": f"only Claude Code has these, an agent of ours works without: {told}"} if missing else {}
    )


def shown(row: ProfileRow) -> dict[str, Any]:
    """A profile as people see it; the values of servers' variables may be secrets, and stay where they are."""
    servers = {
        name: server | ({"env": dict.fromkeys(server["env"], "…")} if server.get("env") else {})
        for name, server in row.mcp_servers.items()
    }
    suffix = next((part.get("text") for part in row.sections if part.get("name") == SUFFIX), None)
    return {
        "id": row.slug,
        "name": row.name,
        "description": row.description,
        "model": row.model,
        "permission_mode": row.permission_profile,
        "allowed_tools": row.tools,
        "mcp_servers": servers,
        "system_prompt_suffix": suffix,
        "sections": [part for part in row.sections if part.get("name") != SUFFIX],
        "categories": row.categories,
        "permissions": row.permissions,
        "limits": row.limits,
        "budget": row.budget,
        "temperature": row.temperature,
        "max_tokens": row.max_tokens,
        "install": row.install,
        **marked([row]),
    }


@category.tool(effect="pure", detail=_profile, touches=touching("records"))
async def get_profile(here: Context, profile_id: str) -> Result:
    """Get details of a specific agent profile."""
    row = await lookup.profile(here.store, profile_id)
    users = [agent.name for agent in await here.store.select(Agent, {"profile_id": row.id}, limit=50)]
    return shown(row) | {"agents": users}


@category.tool(effect="idempotent", detail=_written, touches=touching("permission", budget="money"))
async def edit_profile(
    here: Context,
    profile_id: str,
    name: ProfileName | None = None,
    description: ProfileText | None = None,
    model: str | None = None,
    permission_mode: str | None = None,
    allowed_tools: Tools | None = None,
    mcp_servers: dict[str, Any] | None = None,
    system_prompt_suffix: ProfileText | None = None,
    sections: Sections | None = None,
    categories: Tools | None = None,
    permissions: RuleLists | None = None,
    limits: ProfileLimits | None = None,
    budget: Dollars | None = None,
    temperature: Temperature | None = None,
    max_tokens: AnswerTokens | None = None,
) -> Result:
    """Edit an existing agent profile's properties: only what is given changes, from the next turn on.

    sections replace all that there were; permissions are rules before those of the permission mode.
    """
    row = await lookup.profile(here.store, profile_id)
    if row.slug.startswith(own.PREFIX):
        raise ToolError(
            f"{row.slug!r} holds what an agent changed of itself", "", "let the agent change it, or delete it"
        )
    model = await models.kept(here, model)
    models.warm(here, model or row.model, row.temperature if temperature is None else temperature)
    parts = row.sections if sections is None else kept_sections(sections)
    told = sections is not None or system_prompt_suffix is not None
    given = {
        "name": name,
        "description": description,
        "model": model,
        "permission_profile": mode_of(permission_mode) if permission_mode else None,
        "tools": allowed_tools,
        "mcp_servers": None if mcp_servers is None else servers_of(mcp_servers),
        "sections": _sections(parts, system_prompt_suffix) if told else None,
        "categories": categories,
        "permissions": None if permissions is None else kept_rules(permissions),
        "limits": None if limits is None else row.limits | kept_limits(limits),
        "budget": budget,
        "temperature": temperature,
        "max_tokens": max_tokens,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    if not changes:
        raise ToolError("nothing is to be changed", "no field was given", "give at least one")
    shape.check(row.model_copy(update=changes), here.registry)
    row = await lookup.change(here.store, row, **changes, origin=here.origin.over(row.origin).kept())
    renamed = {
        "permission_profile": "permission_mode",
        "tools": "allowed_tools",
        "sections": "system_prompt_suffix" if sections is None else "sections",
    }
    result: Result = {"updated": row.slug, "fields": [renamed.get(key, key) for key in changes]}
    return result | unknown(here, allowed_tools or [])


@category.tool(effect="idempotent", detail=_profile, touches=touching("permission", "loss"))
async def delete_profile(here: Context, profile_id: str) -> Result:
    """Delete an agent profile. One that agents, projects or unfinished tasks use is kept."""
    row = await lookup.profile(here.store, profile_id)
    users = [agent.name for agent in await here.store.select(Agent, {"profile_id": row.id}, limit=5)]
    users += [p.slug for p in await here.store.select(Project, {"default_profile_id": row.id}, limit=5)]
    waiting = {"profile_id": row.id, "archived": False, "status": ("ne", "COMPLETED")}
    users += [task.slug for task in await here.store.select(Task, waiting, limit=5)]
    if users:
        raise ToolError(
            f"the profile {row.slug!r} is in use", f"by: {', '.join(users)}", "give these another one first"
        )
    told = await lookup.removing(here, {"deleted": row.slug, "name": row.name})
    mine = row.slug.startswith(own.PREFIX)
    if mine:
        own.let_go(here, row)
    if not await here.store.delete(ProfileRow, {"id": row.id, "version": row.version}):
        raise Conflict("the profile was changed meanwhile", "", "look at it, then try again")
    if mine:
        await own.tell(here, row)
    return told


@category.tool(effect="pure", touches=touching("records"))
async def list_available_tools(here: Context) -> Result:
    """Discover available Claude Code tools and well-known MCP servers for use in agent profiles."""
    known = here.registry
    own = (
        {name: [tool.name for tool in part.tools] for name, part in known.categories.items()} if known else {}
    )
    return {
        "tools": own,
        "claude_code_tools": [{"name": name, "description": text} for name, text in CLAUDE_TOOLS.items()],
        "mcp_servers": [
            {"name": name, "command": command, "args": [package], "description": text}
            for name, (command, package, text) in MCP_SERVERS.items()
        ],
    }
