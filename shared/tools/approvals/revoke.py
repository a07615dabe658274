"""Category permissions: end what people allowed for good. Called by people; no category shows it to a model."""

from __future__ import annotations

from shared.errors import Missing, UsageError
from shared.guard.permissions import grants
from shared.guard.permissions.touching import touching
from shared.tools import lookup
from shared.tools.context import Context
from shared.tools.registry import Category, Result

category = Category("permissions", "End permissions that people gave for good")


@category.tool(
    effect="idempotent",
    detail=lambda arguments: str(arguments.get("permission_id", "")),
    touches=touching("permission"),
)
async def revoke_permission(here: Context, permission_id: str) -> Result:
    """End a standing permission: what it allowed is asked for again."""
    told = await lookup.removing(here, {"revoked": permission_id})
    try:
        await grants.revoke(here.store, permission_id)
    except UsageError as error:
        raise Missing(error.what, error.why, error.fix) from None
    return told
