"""The MCP servers as a second source of tools: what they list is taken up when a turn begins, and not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.mcp.link import ServerLink
from shared.mcp.listing import Listing
from shared.mcp.servers import Servers, Wants
from shared.tools.mcp import adapt, servers
from shared.tools.registry import Category


class ServerTools:
    """The tools of the servers that agents of this process have."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._made: dict[str, tuple[list[tuple[ServerLink, Listing]], Sequence[Category]]] = {}

    async def categories(
        self, agent: str, wanted: Sequence[str] | None, own: Mapping[str, Any]
    ) -> Sequence[Category]:
        """A category for each server that has ever listed its tools, also while it is away, and one for all of them."""
        names = None if wanted is None else tuple(wanted)
        found = await self._servers.refresh(agent, Wants(names, own))
        known = [(one, one.listing) for one in found.values() if not one.server.spec.disabled]
        before, made = self._made.get(agent, ([], ()))
        if known == before and (made or not found):
            return made
        listed = [adapt.category(one) for one, listing in known if listing.tools]
        made = (servers.category(found), *listed) if found else ()
        self._made[agent] = (known, made)
        return made
