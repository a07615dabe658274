"""The tools that this release has, as the command line lists them; works with the cluster down."""

from __future__ import annotations

from typing import Any

from shared.client.text.matching import pick
from shared.client.types import Card
from shared.errors import ToolError, UsageError


def catalogue(category: str | None = None) -> list[Card]:
    """All tools in the order of their categories; UsageError for a category that there is not."""
    from shared.tools import catalog
    from shared.tools.registry import Registry

    registry: Registry = catalog.registry()
    if category is not None and category not in registry.categories:
        known = ", ".join(registry.categories)
        raise UsageError(f"there is no category {category!r}", f"there are: {known}", "name one of them")
    return [_card(tool) for tool in registry if category in (None, tool.category)]


def tool(name: str, exact: bool = False) -> Card:
    """One tool, by any of its names, or by a part of one; UsageError for an unknown one.

    One that is to be run is named whole: `exact`.
    """
    from shared.tools import catalog

    registry = catalog.registry()
    try:
        return _card(registry.get(name))
    except ToolError as error:
        if exact:
            raise UsageError(error.what, "", "promptdock tools list shows them all") from None
        names = (found.name for found in registry)
        return _card(registry.get(pick(name, names, "tool", "promptdock tools list shows them all")))


def is_of_server(name: str) -> bool:
    """Whether only the workers know a tool: those of MCP servers come and go."""
    return name.startswith("mcp__") or "_mcp_" in name


def _card(found: Any) -> Card:
    return {
        "name": found.name,
        "category": found.category,
        "core": found.category == "core",
        "effect": found.effect,
        "older": found.older,
        "also": list(found.also),
        "description": found.description,
        "input_schema": found.schema,
    }
