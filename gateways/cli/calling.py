"""A tool of the cluster, called by a person's command: what it refuses is raised, what it did is told."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from gateways.cli import remedy, screen
from shared.errors import Denied, PromptDockError, UsageError

if TYPE_CHECKING:
    from shared.client import Client
    from shared.settings import Settings

_PATIENCE = 300.0  # seconds
_QUIET = 3.0  # seconds after which it is told what a command waits for, and between two looks
_REFUSED = "not allowed"  # how the door begins
_NO_TOOL = "there is no tool called"  # how the registry says so, of one that this command knows
_UNKNOWN = "there is no task called"  # how a tool says that it does not know the task


async def call(
    settings: Settings,
    tool: str,
    user: str,
    arguments: dict[str, Any],
    *,
    patience: float = _PATIENCE,
    profile: str | None = None,
    session: str = "",
    roles: Sequence[str] = (),
    exact: bool = False,
) -> dict[str, Any]:
    """Run a tool in the cluster; its refusals are raised. A part of a name is enough, unless it is `exact`."""
    import asyncio  # here, since help waits for nothing that it does not need

    from shared.client import Client

    async with Client(settings) as client:
        await client.reach()
        if not exact:
            from shared.client.views import lookup  # reads the Store

            arguments = await lookup.meant(client, arguments)
        id = str(uuid4())
        looks = asyncio.create_task(tell_waits(client, id))
        try:
            result = await client.command(
                *(tool, arguments, user),
                patience=patience,
                profile=profile,
                session=session,
                roles=roles,
                message_id=id,
            )
        finally:
            looks.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looks
    if "error" in result:
        raise _refusal(result, arguments)
    return result


async def tell_waits(client: Client, id: str, quiet: float = _QUIET) -> None:
    """Say what a message waits for, whenever that is something else: a permission, another message, a worker."""
    import asyncio

    told = ""
    while True:
        await asyncio.sleep(quiet)
        from shared.client.views import pending  # which few commands take long enough for

        with contextlib.suppress(PromptDockError):
            for row in await pending.pending(client):
                if row["id"] == id and row["waits_for"] not in ("", told):
                    told = row["waits_for"]
                    screen.talk(f"… it waits for {told}")


def _refusal(result: dict[str, Any], arguments: dict[str, Any]) -> PromptDockError:
    what, why, fix = (str(result.get(part) or "") for part in ("error", "why", "fix"))
    if what.startswith(_UNKNOWN) and "task_id" in arguments:
        return UsageError(
            f"there is no task {arguments['task_id']!r}", "", "promptdock tasks list shows them"
        )
    if what.startswith(f"{_NO_TOOL} 'mcp__"):
        return UsageError(what, "its MCP server has no such tool, or was never here", "promptdock mcp list")
    if what.startswith(_NO_TOOL):
        return PromptDockError(
            what, "the workers run an earlier release than this command", "promptdock restart"
        )
    kind = Denied if what.startswith(_REFUSED) else PromptDockError
    return kind(what, why, remedy.typed(fix, arguments))


async def result_for_people(
    settings: Settings, tool: str, kind: str, user: str, as_json: bool, **arguments: Any
) -> dict[str, Any] | None:
    """What a tool did, to be told in words; None where it was printed, as a JSON document of that kind."""
    result = await call(settings, tool, user, arguments)
    if not as_json:
        return result
    screen.document(kind, **result)
    return None
