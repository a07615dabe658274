"""The model that a person chose for one conversation: it holds there until they choose another."""

from __future__ import annotations

from shared.errors import StoreUnavailable
from shared.store.base import Store
from shared.store.records import Setting

KEY = "model"  # the setting of a conversation: {model: name | null}


async def chosen(store: Store, session: str) -> str | None:
    """Its name, or a chain of names; None where the agent's own holds, or the Store is down."""
    try:
        rows = await store.select(Setting, {"scope": f"session:{session}", "key": KEY}, limit=1)
    except StoreUnavailable:
        return None
    found = rows[0].value.get("model") if rows else None
    return str(found) if found else None
