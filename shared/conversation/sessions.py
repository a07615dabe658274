"""The row of a session: made with its first turn, touched with each."""

from __future__ import annotations

from typing import Any

from shared.errors import Conflict
from shared.store.base import Store
from shared.store.records import Session
from shared.store.row import derived, now


async def touch(store: Store, values: dict[str, Any]) -> None:
    """Note that a turn of this session ended (from the archive); what people set on it stays."""
    changed = await store.update(Session, {"last_active_at": now()}, {"key": values["key"]})
    if changed:
        return
    try:
        await store.insert(Session(id=derived("session", values["key"]), **values))
    except Conflict:
        await store.update(Session, {"last_active_at": now()}, {"key": values["key"]})
