"""Category sessions: what of a conversation is gone on from. All of it takes effect with the end of the turn."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from shared.conversation.context import SHORT, WindowChange
from shared.conversation.fullness import fullness
from shared.conversation.past import History
from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.store.records import SnapshotRow, derived, new_id
from shared.tools.context import Context
from shared.tools.registry import Result
from shared.tools.sessions import category as family

category = family.sessions()
_RECORDS = touching("records")
Description = Annotated[str, Field(max_length=500)]


def _past(here: Context) -> History:
    """What this turn goes on from."""
    past = here.past
    if past is None or here.session_id.startswith("command:"):
        raise ToolError(
            "only the turn of a conversation can do this",
            "this call stands beside its conversation",
            "name it",
        )
    return past


def _id(here: Context) -> UUID:
    return derived("snapshot", here.step_id) if here.step_id else new_id()


@category.tool(effect="idempotent", touches=_RECORDS)
async def clear_context(here: Context) -> Result:
    """Begin this conversation anew when this turn ends: nothing said before is shown any more. Its history stays."""
    _past(here)
    return {"clears": "when this turn ends", **WindowChange("clear").told()}


@category.tool(
    effect="idempotent", touches=_RECORDS, detail=lambda arguments: str(arguments.get("description") or "")
)
async def save_context(here: Context, description: Description = "") -> Result:
    """Save what this conversation is now, with a summary, when this turn ends; it goes on as it is."""
    _past(here)
    id = str(_id(here))
    change = WindowChange("save", id, " ".join(description.split()))
    return {"saves": "when this turn ends", "as": id[:SHORT], **change.told()}


@category.tool(effect="idempotent", touches=_RECORDS, detail=lambda arguments: str(arguments.get("id") or ""))
async def restore_context(here: Context, id: Annotated[str, Field(max_length=100)]) -> Result:
    """Go on, from the end of this turn, where a conversation was when it was saved.

    `id` is one that list_saved gives, or the beginning of what it was saved as.
    """
    _past(here)
    row = await family.saved(here, id)
    return {"restores": "when this turn ends", **_card(row), **WindowChange("restore", str(row.id)).told()}


@category.tool(effect="pure", touches=_RECORDS)
async def get_context(here: Context) -> Result:
    """How full this conversation's window is: messages, what a summary tells, tokens of the last call."""
    found = await fullness(here.store, here.session_id, _past(here))
    return {**found.card(), "told": found.told()}


@category.tool(effect="pure", touches=_RECORDS)
async def list_saved(here: Context, limit: Annotated[int, Field(ge=1, le=200)] = 20) -> Result:
    """What this person saved of conversations, the newest first."""
    user = family.person(here)
    rows = await here.store.select(
        SnapshotRow, {"kind": "saved", "user_id": user}, order=[("created_at", "desc")], limit=limit
    )
    return {"saved": [_card(row) for row in rows]}


def _card(row: SnapshotRow) -> dict[str, Any]:
    return {
        "id": str(row.id)[:SHORT],
        "description": row.description,
        "session_id": row.session_id,
        "messages": row.message_count,
        "tool_calls": row.tool_calls,
        "at": row.created_at.isoformat(),
    }
