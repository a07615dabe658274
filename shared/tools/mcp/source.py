"""The MCP servers as a second source of tools: what they list is taken up when a turn begins, and not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.mcp.servers import Servers, Wants
from shared.tools.mcp import adapt, servers
from shared.tools.registry import Category


class ServerTools:
    """The tools of the servers of one agent."""

    def __init__(self, servers: Servers, agent: str) -> None:
        self._servers, self._agent = servers, agent
        self._of: object = None
        self._made: Sequence[Category] = ()

    async def categories(self, wanted: Sequence[str] | None, own: Mapping[str, Any]) -> Sequence[Category]:
        """A category for each server that has ever listed its tools, also while it is away, and one for all of them."""
        names = None if wanted is None else tuple(wanted)
        found = await self._servers.refresh(self._agent, Wants(names, own))
        known = [(one, one.listing) for one in found.values() if not one.server.spec.disabled]
        if known != self._of:
            self._of = known
            listed = [adapt.category(one) for one, listing in known if listing.tools]
            self._made = (servers.category(found), *listed) if found else ()
        return self._made
