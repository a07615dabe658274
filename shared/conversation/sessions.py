"""The row of a session, made with its first turn and touched with each; and what a session works on."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from shared.errors import Conflict, StoreUnavailable
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Session, Setting
from shared.store.row import derived, now


async def touch(store: Store, turns: list[dict[str, Any]]) -> None:
    """Note that turns of these sessions ended (from the archive); what people set on them stays.

    All that bear one mark at once: at a hundred turns a second a write for each would fall behind.
    """
    sessions: dict[str, dict[str, Any]] = {}
    for values in turns:
        sessions[values["key"]] = sessions.get(values["key"], {}) | values
    alike: dict[str, list[str]] = {}
    for key in sorted(sessions):
        alike.setdefault(json.dumps(sessions[key].get("origin")), []).append(key)
    for kept, keys in alike.items():
        for start in range(0, len(keys), IN_LIMIT):
            some = keys[start : start + IN_LIMIT]
            changes = {"last_active_at": now()} | ({"origin": origin} if (origin := json.loads(kept)) else {})
            known = await store.update(Session, changes, {"key": ("in", some)})
            fresh = [sessions[key] for key in set(some) - {row.key for row in known}]
            await _make(store, [Session(id=derived("session", values["key"]), **values) for values in fresh])


async def _make(store: Store, rows: list[Session]) -> None:
    """New rows; one that another drainer made a moment ago stays as it is, with what people set on it."""
    if not rows:
        return
    try:
        await store.insert(rows[0], beside=rows[1:])
    except Conflict:
        for row in rows:
            with contextlib.suppress(Conflict):
                await store.insert(row)


async def active_project(store: Store, session: str) -> str:
    """The project that a conversation works on; the default one where none is set, or the Store is down."""
    try:
        where = {"scope": f"session:{session}", "key": "active_project"}
        found = await store.select(Setting, where, limit=1)
    except StoreUnavailable:
        return "default"
    return str((found[0].value.get("project") if found else None) or "default")
