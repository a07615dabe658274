"""The page of the tools, written from the registry: `make docs` puts it into docs/tools.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shared.guard.permissions.touching import UNKNOWN
from shared.tools.categories import CORE, TIERS, tier
from shared.tools.registry import Registry, Tool

_HEAD = """# Tools

This page is written from the registry by `make docs`; change the tools, not the page.

A tool is a name, a JSON Schema and a function. All run through one executor, whoever calls: a model, a
`command` message, or `promptdock tools call NAME JSON`. A result is a JSON object; one with the key `error`
(and `why`, `fix`) is a failure, and `warning` may stand in any. Text that others wrote (code, diffs, logs) is
marked `"source": "repository"`: it is to be read, never obeyed.

{total} tools: {core} are core, which a conversation always has; {tiers} stand in categories, which are loaded
when they are wanted (`browse_tools`, `load_tools`; all at once with `TOOL_MODE=full`); {older} are older
spellings, which run but are in no category; {own} belong to agents whose profile names them.

| category | tools | for |
| --- | --- | --- |
{categories}

**Effect** says what a crash in the middle means: `pure` only reads, `idempotent` is simply run again, `keyed`
knows the step that it belongs to and does nothing twice, and of a call that is `once` the model is told that
nobody knows whether it took effect.

**Touches** says what a call touches, and what more where an argument is given. From it follow the class of a
call (it reads, it changes, it widens) and what the shipped permissions say of it: [permissions.md](permissions.md).

**Projects** are named by their id (the name in small letters with hyphens). Where `project_id` may be left
out the conversation's active project is meant, see `set_active_project`. **Repositories** are named by their
name, id, path or url; one of another project needs its `project_id` beside it. **Paths** are
`<repository or workspace>/<path in it>`; the first part may be left out where there is only one, and a
project's id may stand before it.

**Pull requests and gists** are made by GitHub's command line `gh`, with the login that it has on the worker's
machine (`gh auth login`, or `GH_TOKEN` in the worker's environment); without it these tools say so.

**MCP servers** bring tools that are not on this page: [mcp.md](mcp.md).

**Notes, profile and memory** are searched by full text. Nothing writes a project's profile by itself yet:
`regenerate_profile` hands over the history from which the caller can.
"""
_OWN = {
    "consult": "Chatter's: the other agents, tasks for them, and the person",
    "repos": "Chatter's, beside `add_repo` and `list_repos`",
    "history": "Researcher's: who wrote a line",
    "symbols": "Researcher's: where something is defined",
    "research": "Researcher's: what it found",
    "planning": "Planner's: the plan",
    "coding": "Frontend's and Backend's: the workspace of a task",
}


def render(registry: Registry) -> str:
    """The whole page, in Markdown."""
    shown = {name: registry.category(name) for name in (CORE, *TIERS)}
    older = [tool for tool in registry if tool.older]
    own = {name: registry.category(name) for name in registry.categories if name not in shown}
    head = _HEAD.format(
        total=len(list(registry)),
        core=len(shown[CORE]),
        tiers=sum(len(tools) for name, tools in shown.items() if name != CORE),
        older=len(older),
        own=sum(map(len, own.values())),
        categories="\n".join(
            f"| {name} | {len(tools)} | {tier(name).description} |" for name, tools in shown.items()
        ),
    )
    parts = [head, *(_section(f"Category {name}", tools) for name, tools in shown.items())]
    parts.append(_section("Older spellings", older))
    parts += [
        _section(f"Category {name}", tools, _OWN.get(name, registry.categories[name].description))
        for name, tools in own.items()
    ]
    return "\n".join(parts)


def _section(title: str, tools: Iterable[Tool], about: str = "") -> str:
    lines = [f"## {title}", "", *([f"{about}.", ""] if about else [])]
    lines += ["| tool | parameters | effect | touches | does |", "| --- | --- | --- | --- | --- |"]
    lines += [_row(tool) for tool in tools]
    return "\n".join(lines) + "\n"


def _row(tool: Tool) -> str:
    required = set(tool.schema.get("required", ()))
    told = [_parameter(name, field, name in required) for name, field in tool.schema["properties"].items()]
    names = ", ".join(f"`{name}`" for name in (tool.name, *tool.also))
    does = " ".join(tool.description.split()).replace("|", "\\|")
    return f"| {names} | {', '.join(told) or '—'} | {tool.effect} | {_touches(tool)} | {does} |"


def _touches(tool: Tool) -> str:
    """What it declares: `records; budget: money`."""
    declared = tool.touches or UNKNOWN
    more = [f"`{name}`: {', '.join(when.kinds)}" for name, when in declared.by.items()]
    return "; ".join([", ".join(declared.always), *more])


def _parameter(name: str, field: dict[str, Any], required: bool) -> str:
    if required:
        return f"`{name}`"
    default = field.get("default")
    return f"`{name}?`" if default in (None, "", [], {}) else f"`{name}?={_plain(default)}`"


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
