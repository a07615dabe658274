"""What a tool that changes an agent itself is told: what the agent is, and whose word stands behind the call."""

from __future__ import annotations

from pydantic import ValidationError

from shared import log
from shared.errors import ToolError
from shared.guard.permissions.presets import Policies
from shared.store.records import ProfileRow
from shared.tools.context import Context, Own

PREFIX = "self:"  # of the ids of the rows that hold agents' own changes; no profile that people make has such an id


def own(here: Context) -> Own:
    """Whose word stands behind this call; ToolError where there is nobody's."""
    found = here.own
    if found is None or not found.person:
        raise ToolError(
            "an agent is changed at a person's request only", "no person's request led to this call", ""
        )
    return found


def slug(agent: str) -> str:
    """The id of the profile row that holds an agent's own changes."""
    return f"{PREFIX}{agent}"


def permissions(row: ProfileRow, folder: Policies) -> Policies:
    """The permissions of an agent with these changes; such as cannot be read let it read only."""
    if not row.permissions:
        return folder
    try:
        return Policies.model_validate(row.permissions)
    except ValidationError as error:
        log.get().error("An agent's permissions cannot be read", profile=row.slug, why=str(error)[:300])
        return Policies(preset="locked")


def let_go(here: Context, row: ProfileRow) -> None:
    """Before an agent's own changes are deleted: what may make it more powerful needs who may grant that."""
    mine = own(here)
    if row.permissions and not mine.approver:
        raise ToolError(
            f"{mine.person} may not grant this",
            f"{row.slug!r} holds permissions, and they have none of APPROVER_ROLES",
            "ask someone who has one",
        )


async def tell(here: Context, row: ProfileRow) -> None:
    """Let the workers of an agent whose changes these are read them anew."""
    await own(here).tell(row.slug.removeprefix(PREFIX))
