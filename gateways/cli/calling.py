"""A tool of the cluster, called by a person's command: what it refuses is raised, what it did is told."""

from __future__ import annotations

from typing import Any

from gateways.cli import remedy, screen
from shared.errors import Denied, PromptDockError, UsageError
from shared.settings import Settings
from shared.visitor import Visitor

_PATIENCE = 300.0  # seconds
_REFUSED = "not allowed"  # how the door begins
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
) -> dict[str, Any]:
    """Run a tool in the cluster; its refusals are raised."""
    async with Visitor(settings) as visitor:
        await visitor.reach()
        result = await visitor.command(
            tool, arguments, user, patience=patience, profile=profile, session=session
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
    kind = Denied if what.startswith(_REFUSED) else PromptDockError
    return kind(what, why, remedy.typed(fix, arguments))


async def told(
    settings: Settings, tool: str, kind: str, user: str, as_json: bool, **arguments: Any
) -> dict[str, Any] | None:
    """What a tool did, to be told in words; None where it was printed, as a JSON document of that kind."""
    result = await call(settings, tool, user, arguments)
    if not as_json:
        return result
    screen.document(kind, **result)
    return None
