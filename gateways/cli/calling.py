"""A tool of the cluster, called by a person's command: what it refuses is raised, what it did is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gateways.cli import remedy, screen
from shared.errors import Denied, PromptDockError, UsageError

if TYPE_CHECKING:
    from shared.settings import Settings

_PATIENCE = 300.0  # seconds
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
    from shared.client import Client

    async with Client(settings) as client:
        await client.reach()
        if not exact:
            from shared.client.views import lookup  # reads the Store

            arguments = await lookup.meant(client, arguments)
        result = await client.command(
            tool, arguments, user, patience=patience, profile=profile, session=session, roles=roles
        )
    if "error" in result:
        raise _refusal(result, arguments)
    return result


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
