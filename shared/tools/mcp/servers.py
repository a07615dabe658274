"""Tools of category mcp: which servers there are, and what they have beside tools: resources and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shared.errors import Missing, ToolError
from shared.guard.permissions.touching import touching
from shared.mcp.link import ServerLink
from shared.tools.context import Context
from shared.tools.mcp import content
from shared.tools.registry import Category, Result

if TYPE_CHECKING:
    from mcp import types

NAME = "mcp"
_LISTED = 100
_TEXT = 300  # characters of a description


def _named(arguments: dict[str, Any]) -> str:
    return f"{arguments.get('server', '')}/"


def _short(text: str | None) -> str:
    return " ".join((text or "").split())[:_TEXT]


def category(links: Mapping[str, ServerLink]) -> Category:
    """These tools, for these servers."""
    mcp = Category(NAME, "MCP servers: which there are, their resources and prompts", on_demand=True)
    reaches = touching("address")

    def of(server: str) -> ServerLink:
        if server not in links:
            raise Missing.named("MCP server", server, links, "name one of them")
        return links[server]

    @mcp.tool(effect="pure", touches=touching("records"), foreign=True)
    async def list_mcp_servers(here: Context) -> Result:
        """List the MCP servers that you can use, whether they are here, and the category of their tools."""
        for one in links.values():
            one.hurry()
        return {"servers": [_server(one) for one in links.values()]}

    @mcp.tool(effect="pure", touches=reaches, detail=_named, foreign=True)
    async def list_mcp_resources(here: Context, server: str) -> Result:
        """List what can be read from an MCP server, and the templates of further addresses."""
        one = of(server)
        try:
            found, templates = await one.resources()
        except ToolError as error:
            return content.failed(server, error)
        shown, more = content.some(found, _LISTED)
        return {
            "resources": [_resource(one) for one in shown],
            "templates": [
                {"uri": one.uri_template, "name": one.name, "description": _short(one.description)}
                for one in templates[:_LISTED]
            ],
            "source": content.source(server),
            **more,
        }

    @mcp.tool(
        effect="pure",
        touches=reaches,
        detail=lambda given: f"{given.get('server', '')}/{given.get('uri', '')}",
        foreign=True,
    )
    async def read_mcp_resource(here: Context, server: str, uri: str) -> Result:
        """Read a resource of an MCP server by its uri."""
        one = of(server)
        try:
            return content.read(server, await one.read(uri))
        except ToolError as error:
            return content.failed(server, error)

    @mcp.tool(effect="pure", touches=reaches, detail=_named, foreign=True)
    async def list_mcp_prompts(here: Context, server: str) -> Result:
        """List the prompts that an MCP server offers, with their arguments."""
        one = of(server)
        try:
            shown, more = content.some(await one.prompts(), _LISTED)
        except ToolError as error:
            return content.failed(server, error)
        return {"prompts": [_prompt(one) for one in shown], "source": content.source(server), **more}

    @mcp.tool(
        effect="pure",
        touches=reaches,
        detail=lambda given: f"{given.get('server', '')}/{given.get('name', '')}",
        foreign=True,
    )
    async def get_mcp_prompt(
        here: Context, server: str, name: str, arguments: dict[str, str] | None = None
    ) -> Result:
        """Get a prompt of an MCP server, filled in with these arguments."""
        one = of(server)
        try:
            return content.prompt(server, await one.prompt(name, arguments or {}))
        except ToolError as error:
            return content.failed(server, error)

    return mcp


def _server(one: ServerLink) -> dict[str, Any]:
    health = one.health
    why = {"why": health.why} if health.why else {}
    return {
        "name": one.name,
        "state": health.state,
        "tools": health.tools,
        "category": f"mcp__{one.name}",
        **why,
    }


def _resource(one: types.Resource) -> dict[str, Any]:
    kind = {"type": one.mime_type} if one.mime_type else {}
    return {"uri": str(one.uri), "name": one.name, "description": _short(one.description), **kind}


def _prompt(one: types.Prompt) -> dict[str, Any]:
    arguments = [
        {
            "name": argument.name,
            "required": bool(argument.required),
            "description": _short(argument.description),
        }
        for argument in one.arguments or []
    ]
    return {"name": one.name, "description": _short(one.description), "arguments": arguments}
