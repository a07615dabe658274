"""The first request of a conversation: how many bytes go to the provider, with tools on demand and with all of them."""

from __future__ import annotations

import json
from pathlib import Path

from shared.conversation import prompt
from shared.guard.permissions.presets import preset
from shared.profiles.profile import load
from shared.tools import catalog
from shared.tools.categories import CORE
from shared.tools.view import ToolMode, ToolView

CHATTER = Path(__file__).parents[1] / "agents" / "chatter"


def sizes(mode: ToolMode) -> dict[str, int]:
    """Bytes of JSON: the schemas of the tools, the index of names in the prompt, and the whole request."""
    profile, registry = load(CHATTER), catalog.registry()
    core = [tool.name for tool in registry.category(CORE)]
    policy = preset(profile.permissions.preset or "locked")
    view = ToolView(
        registry,
        list(dict.fromkeys([*core, *profile.tools])),
        on_demand=True,
        mode=mode,
        hidden=lambda tool: policy.hides(tool.name, tool.category),
        loadable=profile.loadable,
    )
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
        for tool in view.specs()
    ]
    system = prompt.compose(profile.prompt, roster={}, repositories="")
    messages = [{"role": "user", "content": "[from Ada]: Hello"}]
    request = {"system": [*system, view.index], "tools": tools, "messages": messages}
    found = {"tools": tools, "index": view.index, "request": request}
    return {name: len(json.dumps(part, ensure_ascii=False).encode()) for name, part in found.items()}


def measure() -> None:
    """Print both, and their ratio."""
    tiered, full = sizes("tiered"), sizes("full")
    print("\nThe first request of a conversation, in bytes:")
    for name, found in (("tools on demand", tiered), ("all tools", full)):
        told = ", ".join(f"{part} {size}" for part, size in found.items())
        print(f"  {name}: {told}")
    part = (tiered["tools"] + tiered["index"]) / full["tools"]
    print(
        f"  tools and index are {part:.1%}, the request is {tiered['request'] / full['request']:.1%} of all"
    )
