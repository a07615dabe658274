"""MCP servers for people: which are configured, how the workers find them, and a try without the cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.client.client import Client
from shared.client.findings import Finding
from shared.client.text.safe import line
from shared.client.types import Card
from shared.errors import BusUnreachable, ConfigurationError, PromptDockError, ToolError, UsageError
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.mcp.config import Configured, Server
    from shared.mcp.link import ServerLink

_LISTS = "promptdock mcp list shows those that there are"
_BACK = 4.0  # seconds in which a server that can be reached is back, and its workers say so
_NONE = "none is configured"


@dataclass(frozen=True)
class Tried:
    """What a server has, as it says itself."""

    called: str
    tools: list[Card]
    left_out: list[str]
    resources: int
    prompts: int


def configured(settings: Settings) -> Configured:
    """All servers that count here, and what does not."""
    from shared.mcp import config

    return config.read(settings.home, config.environment(settings.home), settings.secrets())


async def listed(client: Client) -> list[Card]:
    """The configured servers, each with how the workers find it; also with the cluster down."""
    found = configured(client.settings)
    try:
        cards = await client.presence.here()
    except BusUnreachable:
        cards = []
    seen = states(cards)
    here = [_card(server, seen.get(name, {})) for name, server in found.servers.items()]
    brought = [name for name in seen if name not in found.servers]
    return here + [_brought(name, seen[name]) for name in brought]


async def reached(client: Client) -> None:
    """Let the workers try again now the servers that are lost to them, and wait a little for what comes of it."""
    from shared.mcp.servers import HURRY

    with contextlib.suppress(PromptDockError, TimeoutError):
        async with asyncio.timeout(_BACK):
            if not (before := _tries(await client.presence.here())):
                return
            await client.bus.publish(client.names.board, HURRY)
            while not before.isdisjoint(_tries(await client.presence.here())):  # noqa: ASYNC110 - cards are no event
                await asyncio.sleep(0.2)


def _tries(cards: Iterable[Card]) -> set[tuple[str, str, int]]:
    """The servers that are lost, to which worker, and how often that was found."""
    return {
        (str(card["instance"]), str(one["name"]), int(one.get("tries") or 0))
        for card in cards
        for one in card.get("mcp") or ()
        if one.get("state") == "lost"
    }


def states(cards: Iterable[Card]) -> dict[str, dict[str, str]]:
    """By server, and by agent, the state in which a worker has it, in words."""
    seen: dict[str, dict[str, str]] = {}
    for card in cards:
        for one in card.get("mcp") or ():
            why = f": {one['why']}" if one.get("why") else ""
            state = (
                f"{one['tools']} tool{'s' * (one['tools'] != 1)}"
                if one["state"] == "ready"
                else f"{one['state']}{why}"
            )
            seen.setdefault(str(one["name"]), {})[str(card["agent"])] = line(state)
    return seen


def lost(cards: Iterable[Card]) -> list[str]:
    """Lines about servers that a worker does not reach."""
    return [
        line(f"the MCP server {one['name']} is lost to {card['agent']}: {one.get('why', '')}")
        for card in cards
        for one in card.get("mcp") or ()
        if one.get("state") == "lost"
    ]


def _card(server: Server, seen: dict[str, str]) -> Card:
    spec = server.spec
    return {
        "name": server.name,
        "type": spec.type,
        "where": line(spec.where),
        "sandbox": spec.sandbox,
        "file": str(server.source),
        "state": "off" if spec.disabled else "",
        "agents": seen,
        "notes": list(server.notes),
    }


def _brought(name: str, seen: dict[str, str]) -> Card:
    """One that a worker has, and no file here: the profile of an agent brings it."""
    whence = f"the profile of {', '.join(seen)}"
    rest = {"type": "", "where": "", "sandbox": False, "state": "", "notes": []}
    return {**rest, "name": name, "file": whence, "agents": seen}


def add(settings: Settings, name: str, entry: dict[str, Any], replace: bool = False) -> Path:
    """Write a server into the data folder's own file, checked; the file."""
    from shared.mcp import config

    file = settings.home / config.FILE
    try:
        config.server(name, entry, file, config.environment(settings.home), settings.secrets())
    except ConfigurationError as error:
        raise UsageError(f"the MCP server {name[:50]} is not added", error.why, error.fix) from None

    def edit(servers: dict[str, Any]) -> None:
        if name in servers and not replace:
            fix = "give --replace, or take another name"
            raise UsageError(f"there is an MCP server {name} already", "", fix)
        servers[name] = entry

    return config.change(settings.home, edit)


def remove(settings: Settings, name: str) -> Path:
    """Take a server out of the data folder's own file; the file."""
    from shared.mcp import config

    def edit(servers: dict[str, Any]) -> None:
        if servers.pop(name, None) is None:
            other = configured(settings).servers.get(name)
            why = f"it stands in {other.source}" if other else ""
            raise UsageError(f"there is no MCP server {name!r} in {settings.home}", why, _LISTS)

    return config.change(settings.home, edit)


async def tried(settings: Settings, name: str, patience: float) -> Tried:
    """Open a session of our own with a server, and look what it has; UsageError or ToolError where that fails."""
    async with _linked(settings, name, patience) as link:
        await link.present()
        tools = [{"name": t.name, "effect": t.effect, "does": t.description} for t in link.listing.tools]
        counts = [await _count(link.resources()), await _count(link.prompts())]
        return Tried(link.health.called, tools, list(link.listing.left_out), *counts)


async def _count(asking: Any) -> int:
    """How many there are; a server need not have any such thing."""
    try:
        found = await asking
    except ToolError:
        return 0
    return sum(len(part) for part in found) if isinstance(found, tuple) else len(found)


@asynccontextmanager
async def _linked(settings: Settings, name: str, patience: float) -> AsyncIterator[ServerLink]:
    from shared.guard.sandbox.sandbox import Sandbox
    from shared.mcp.link import Patience, ServerLink
    from shared.tools.mcp.launch import launching

    found = configured(settings)
    if name not in found.servers:
        problem = next((one for one in found.problems if one.about == name), None)
        if problem:
            raise UsageError(f"the MCP server {name} cannot be used", problem.why, problem.fix)
        there = ", ".join(found.servers) or _NONE
        raise UsageError(f"there is no MCP server {name[:50]!r}", f"there are: {there}", _LISTS)
    launch = launching(settings.home, lambda: Sandbox.probe(settings.sandbox, [settings.home]))
    waits = Patience(start=patience, answer=min(patience, 10), back=patience + 1)
    link = ServerLink(found.servers[name], launch, waits)
    task = asyncio.create_task(link.run())
    try:
        await asyncio.wait_for(link.tried.wait(), patience + 5)
        if link.state == "lost":
            raise ToolError(
                f"the MCP server {name} cannot be used", link.why, f"look at {link.server.source}"
            )
        yield link
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def findings(settings: Settings) -> list[Finding]:
    """For `doctor`: what is configured, and what of it cannot be used."""
    found = configured(settings)
    wrong = [Finding("mcp", "warn", f"{one.about}: {one.why}", one.fix) for one in found.problems]
    names = ", ".join(found.servers)
    return [*([Finding("mcp", "ok", f"servers: {names}")] if names else []), *wrong]
