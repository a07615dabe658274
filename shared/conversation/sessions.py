"""The row of a session, made with its first turn and touched with each; and what a session works on."""

from __future__ import annotations

from typing import Any

from shared.errors import Conflict, StoreUnavailable
from shared.store.base import Store
from shared.store.records import Session, Setting
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


async def active_project(store: Store, session: str) -> str:
    """The project that a conversation works on; the default one where none is set, or the Store is down."""
    try:
        where = {"scope": f"session:{session}", "key": "active_project"}
        found = await store.select(Setting, where, limit=1)
    except StoreUnavailable:
        return "default"
    return str((found[0].value.get("project") if found else None) or "default")
