"""A change that a person asks for: a tool of the cluster, through the same door as the model's calls."""

from __future__ import annotations

from typing import Any

from gateways.web.access import Person
from shared.client.client import Client
from shared.client.views import lookup
from shared.errors import Denied, PromptDockError, ToolError

_PATIENCE = 60.0  # seconds; what waits longer, as for a permission, still runs
_REFUSED = "not allowed"  # how the door begins


async def call(
    client: Client,
    person: Person,
    tool: str,
    arguments: dict[str, Any],
    session: str = "",
    patience: float = _PATIENCE,
) -> dict[str, Any]:
    """What the tool did; its refusals are raised. What needs a permission is asked of the person as ever."""
    await client.reach()
    result = await client.command(
        tool,
        await lookup.meant(client, arguments),
        person.user_id,
        patience=patience,
        session=session,
        roles=person.roles,
    )
    if "error" in result:
        raise _refusal(result)
    return result


def given(**arguments: Any) -> dict[str, Any]:
    """Those arguments that were given at all."""
    return {name: value for name, value in arguments.items() if value is not None}


def _refusal(result: dict[str, Any]) -> PromptDockError:
    what, why, fix = (str(result.get(part) or "") for part in ("error", "why", "fix"))
    if what.startswith(_REFUSED):
        return Denied(what, why, fix)
    return ToolError(what, why, fix)
