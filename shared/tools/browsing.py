"""Tools of category core: look at the categories of tools, and load a part of them."""

from __future__ import annotations

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.tools.categories import CORE, tier, tiers
from shared.tools.context import Context
from shared.tools.registry import Registry, Result
from shared.tools.view import named

category = tier("core")


def _registry(here: Context) -> Registry:
    assert here.registry is not None  # the executor hands it over
    return here.registry


@category.tool(effect="pure", touches=touching("records"))
async def browse_tools(here: Context) -> Result:
    """List the categories of tools that can be loaded, and what they are for."""
    registry = _registry(here)
    return {
        "categories": [
            {"name": name, "description": text, "tool_count": len(registry.category(name))}
            for name, text in tiers(registry).items()
        ]
    }


@category.tool(
    effect="pure", detail=lambda arguments: str(arguments.get("category", "")), touches=touching("records")
)
async def load_tools(here: Context, category: str) -> Result:
    """Load a category of tools, or one tool by its name, for use from the next step on."""
    if category == CORE:
        return {"loaded": CORE, "tools_added": [], "message": "The core tools are always available."}
    tools = [tool for tool in named(_registry(here), category) if tool.name not in here.hidden]
    if not tools:
        raise ToolError(f"{category} cannot be loaded", "your permissions deny it", "go on without it")
    # What others wrote of their tools stands in what the model is shown from now on.
    theirs = {"source": category} if any(tool.accepts for tool in tools) else {}
    count = f"{len(tools)} {category} tools are" if category in tiers(_registry(here)) else f"{category} is"
    return {
        "loaded": category,
        "tools_added": [tool.name for tool in tools],
        "message": f"{count} now available.",
        **theirs,
    }
