"""The model and the profile that a person chose for one conversation: they hold there until they choose others."""

from __future__ import annotations

from shared.errors import StoreUnavailable
from shared.store.base import Store
from shared.store.records import Setting

KEY = "model"  # the setting of a conversation: {model: name | null}
PROFILE = "profile"  # the same: {profile: id | null}


async def chosen(store: Store, session: str) -> str | None:
    """The model's name, or a chain of names; None where the agent's own holds, or the Store is down."""
    return await _chosen(store, session, KEY)


async def profile(store: Store, session: str) -> str | None:
    """The profile's id; None where none was chosen, or the Store is down."""
    return await _chosen(store, session, PROFILE)


async def _chosen(store: Store, session: str, key: str) -> str | None:
    try:
        rows = await store.select(Setting, {"scope": f"session:{session}", "key": key}, limit=1)
    except StoreUnavailable:
        return None
    found = rows[0].value.get(key) if rows else None
    return str(found) if found else None
