"""A server's tool as one of ours: name, schema, permission by name and server, effect, and the call itself."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

from shared.errors import ToolError
from shared.guard.permissions.display import tagless
from shared.mcp.link import ServerLink
from shared.mcp.listing import ListedTool
from shared.tools.context import Context
from shared.tools.mcp import content
from shared.tools.registry import Category, Result, Tool

PREFIX = "mcp__"
_SAID = 5.0  # seconds between two lines of progress


def category(link: ServerLink) -> Category:
    """All tools of a server, as a category that is loaded on demand."""
    name = f"{PREFIX}{link.name}"
    about = f"Tools of the MCP server {link.name}"
    tools = [tool(link, name, one) for one in link.listing.tools]
    return Category(name, about, tools, on_demand=True)


def tool(link: ServerLink, category: str, listed: ListedTool) -> Tool:
    """One of them. A call reaches the server, which may be anywhere: that is asked under `standard`."""
    server = link.name

    async def call(here: Context, /, **arguments: Any) -> Result:
        try:
            answer = await link.call(listed, arguments, _progress(here))
        except ToolError as error:
            return content.failed(server, error)
        return content.called(server, listed, answer)

    async def ready(_here: Context, /, **_arguments: Any) -> None:
        await link.present()

    async def binds(_here: Context, /, **_arguments: Any) -> dict[str, str]:
        now = link.tool(listed.name)
        definition = now.definition if now else ""
        return {"server": link.server.spec.where, "definition": definition}

    return Tool(
        name=f"{category}__{listed.name}",
        category=category,
        description=tagless(listed.description) or f"{listed.name} of the MCP server {server}",
        effect=listed.effect,
        function=call,
        detail=lambda _arguments: f"{server}/{listed.name}",
        ready=ready,
        binds=binds,
        accepts=replace(listed.arguments, schema=_tagless(listed.arguments.schema)),
    )


def _tagless(schema: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(tagless(json.dumps(schema, ensure_ascii=False)))
    return shown


def _progress(here: Context) -> Any:
    """Lines of progress for the person, not too many."""
    last = [0.0]

    async def say(text: str) -> None:
        if time.monotonic() - last[0] > _SAID:
            last[0] = time.monotonic()
            await here.say(tagless(text))

    return say
