"""What a profile that is a row is made of, parsed: its sections, limits, permissions; and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.errors import ToolError
from shared.guard.permissions.presets import Policies
from shared.plain import complaints
from shared.store.records import ProfileRow
from shared.store.sections import Section, SectionName
from shared.tools.registry import Registry

SUFFIX = "suffix"  # the section that system_prompt_suffix fills
EVERYTHING = "*"  # among tools: whatever there is can be loaded
# What Claude Code calls the tools that we have too, and what only it has: profiles from elsewhere name them so.
CLAUDE_ALONE = ("WebFetch", "WebSearch", "NotebookEdit", "Task", "TodoWrite")
ALIASES = {
    "Read": "view", "Write": "create_file", "Edit": "str_replace", "Glob": "glob_files", "Grep": "grep",
    "Bash": "bash",
}  # fmt: skip


class ProfileLimits(BaseModel):
    """Where an agent stops."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rounds: Annotated[int, Field(ge=1, le=1000)] | None = None
    turns: Annotated[int, Field(ge=1, le=1024)] = 8
    task_minutes: Annotated[float, Field(gt=0, le=7 * 24 * 60)] = 30
    approval_minutes: Annotated[float, Field(gt=0, le=7 * 24 * 60)] = 15.0


def sections_of(kept: Sequence[Mapping[str, Any]]) -> tuple[Section, ...]:
    """The sections of a row; one of a name that nobody knows counts as a custom one."""
    return tuple(_section(part) for part in kept)


def _section(part: Mapping[str, Any]) -> Section:
    name = str(part.get("name") or "custom")
    known = name if name in get_args(SectionName) else "custom"
    title = str(part.get("title") or ("" if known == name or name == SUFFIX else name))
    return Section.model_validate(
        {
            "name": known,
            "title": title[:100],
            "text": str(part.get("text") or ""),
            "enabled": part.get("enabled") is not False,
        }
    )


def limits_of(row: ProfileRow) -> ProfileLimits:
    """The limits of a row; ToolError where they cannot be used."""
    try:
        return ProfileLimits.model_validate(row.limits)
    except ValidationError as error:
        raise _wrong(row, "its limits", error) from None


def policies_of(row: ProfileRow) -> Policies:
    """The permissions of a row; ToolError names the pattern that cannot be used."""
    minutes = limits_of(row).approval_minutes
    given = {"preset": row.permission_profile, **row.permissions}
    try:
        return Policies.model_validate({"approval_minutes": minutes, **given})
    except ValidationError as error:
        raise _wrong(row, "its permissions", error) from None


def tools_of(row: ProfileRow) -> list[str]:
    """The tools that a row names, by our names."""
    plain = (tool.partition("(")[0] if "(" in tool else tool for tool in row.tools if tool != EVERYTHING)
    return list(dict.fromkeys(ALIASES.get(tool, tool) for tool in plain if tool not in CLAUDE_ALONE))


def on_demand(row: ProfileRow) -> bool:
    """Whether everything can be loaded while a turn runs: where it says so, or names nothing."""
    return EVERYTHING in row.tools or not (row.tools or row.categories)


def check(row: ProfileRow, registry: Registry | None) -> None:
    """ToolError for a profile that could not run: it is said when it is written, not in somebody's turn."""
    policies_of(row)
    try:
        sections_of(row.sections)
    except ValidationError as error:
        raise _wrong(row, "its sections", error) from None
    if registry is None:
        return
    for tool in tools_of(row):
        if tool not in registry and not tool.startswith("mcp__"):
            raise _unknown(row, "tool", tool, [tool.name for tool in registry], "list_available_tools")
    for category in row.categories:
        if category not in registry.categories:
            raise _unknown(row, "category", category, list(registry.categories), "browse_tools")


def _unknown(row: ProfileRow, kind: str, name: str, known: Sequence[str], where: str) -> ToolError:
    import difflib

    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    why = f"the nearest: {', '.join(close)}" if close else f"none has a name like it, see {where}"
    return ToolError(
        f"the profile {row.slug!r} cannot be used: no {kind} is called {name[:100]!r}",
        why,
        "correct its name",
    )


def _wrong(row: ProfileRow, what: str, error: ValidationError) -> ToolError:
    found = complaints(error.errors(include_input=False, include_url=False))
    return ToolError(
        f"the profile {row.slug!r} cannot be used: {what}",
        "; ".join(found)[:500],
        "correct it, then try again",
    )
