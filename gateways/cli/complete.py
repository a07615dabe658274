"""What a shell offers to complete: names that the cluster or its Store knows, asked quickly and in silence."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from shared.client import Client

_SESSIONS = 50
_PATIENCE = 0.5  # seconds that a person may wait for a Tab
Names = list[tuple[str, str]]  # each with what is told beside it


def tasks(incomplete: str) -> Names:
    """Tasks, the newest first."""
    return _offered(_tasks, incomplete)


def projects(incomplete: str) -> Names:
    """Projects."""
    return _offered(_projects, incomplete)


def repos(incomplete: str) -> Names:
    """Registered repositories."""
    return _offered(_repos, incomplete)


def sessions(ctx: typer.Context, incomplete: str) -> Names:
    """Conversations of the person, the last used first."""
    given = ctx.params

    async def find(client: Client) -> Names:
        from gateways.cli.run import me
        from shared.client.views.conversation import own

        mine = await own.listed(client, given.get("user") or me(), limit=_SESSIONS)
        return [(str(one["session_id"]), str(one["title"])) for one in mine]

    return _offered(find, incomplete)


def hooks(incomplete: str) -> Names:
    """Hooks."""
    return _offered(_hooks, incomplete)


def notes(ctx: typer.Context, incomplete: str) -> Names:
    """Notes of the project that was named before, else of the active one."""
    given = ctx.params

    async def find(client: Client) -> Names:
        from gateways.cli.run import me
        from shared.client.views import lookup, notes, projects

        if project := given.get("project"):
            return await notes.names(client, await lookup.project(client, project))
        user = given.get("user") or me()
        return await notes.names(client, await projects.active(client, user, given.get("session")))

    return _offered(find, incomplete)


def approvals(incomplete: str) -> Names:
    """Requests for permission that nobody answered yet."""
    return _offered(_approvals, incomplete)


def agents(incomplete: str) -> Names:
    """Agents that were ever here."""
    return _offered(_agents, incomplete)


def tools(incomplete: str) -> Names:
    """Tools of the agents."""
    return _offered(_tools, incomplete)


def profiles(incomplete: str) -> Names:
    """Profiles of permissions."""
    return _offered(_profiles, incomplete)


def dead(incomplete: str) -> Names:
    """Dead letters."""
    return _offered(_dead, incomplete)


def _offered(find: Callable[[Client], Awaitable[Names]], incomplete: str) -> Names:
    """What begins as it was typed; nothing where the cluster does not answer at once."""
    import asyncio

    found: Names = []
    # Whatever goes wrong: a line that is being typed is no place to say so.
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        found = asyncio.run(_asked(find))
    return [one for one in found if one[0].startswith(incomplete)]


async def _asked(find: Callable[[Client], Awaitable[Names]]) -> Names:
    import asyncio

    from shared.client import Client
    from shared.settings import load

    async with asyncio.timeout(_PATIENCE), Client(load()) as client:
        return await find(client)


async def _tasks(client: Client) -> Names:
    from shared.client.views.tasks import tasks

    return [(card["id"], f"{tasks.state(card)}  {card['title']}"[:80]) for card in await tasks.tasks(client)]


async def _projects(client: Client) -> Names:
    from shared.client.views import lookup

    return await lookup.listed(client, "project")


async def _repos(client: Client) -> Names:
    from shared.client.views.tasks import tasks

    return [(card["name"], card["kind"]) for card in await tasks.repos(client)]


async def _hooks(client: Client) -> Names:
    from shared.client.views import lookup

    return await lookup.listed(client, "hook")


async def _approvals(client: Client) -> Names:
    from shared.client.views.permissions import approvals

    return [(card["id"], str(card["action"])[:80]) for card in await approvals.listing(client, False)]


async def _agents(client: Client) -> Names:
    return [(name, "") for name in await client.presence.agents()]


async def _tools(client: Client) -> Names:
    from shared.client.views import tools

    cards = tools.catalogue(None)
    return [(card["name"], str(card["description"]).partition("\n")[0][:80]) for card in cards]


async def _profiles(client: Client) -> Names:
    from shared.client.views.permissions import profiles as permissions

    return [(card["name"], card["source"]) for card in await permissions.listing(client)]


async def _dead(client: Client) -> Names:
    from shared.client.views import dead_letters

    cards = [letter.card() for letter in await dead_letters.letters(client)]
    return [(card["key"], str(card["reason"])[:80]) for card in cards]
