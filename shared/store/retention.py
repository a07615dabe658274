"""How long rows of what happened are kept: each table has a bound in days, and what is still needed goes beyond it.

What people made (projects, tasks, notes, memories, hooks, saved windows, settings) stays until somebody deletes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, get_args

from shared.settings import Aged
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import (
    Approval,
    Audit,
    ConversationMessage,
    Delivery,
    HookRun,
    Log,
    Message,
    Post,
    Row,
    Session,
    SnapshotRow,
    Task,
    TaskEvent,
    TokenUsage,
    TurnRow,
    TurnStep,
)

SLICE = 500  # rows that one write deletes, so that nobody waits long for the Store
Going = Callable[[], Awaitable[bool]]  # asked before each write: whether it is still ours to do
_ENDED = ("COMPLETED", "FAILED", "BLOCKED")


@dataclass(frozen=True)
class Rule:
    """Rows of a table older than so many days go, of those that match."""

    kind: type[Row]
    days: int
    where: Mapping[str, Any] = field(default_factory=dict)


_DECIDED = ["allow_once", "always", "deny", "expired", "withdrawn"]
_LOGS = (
    Rule(Log, 30),
    Rule(TurnStep, 30),
    Rule(Message, 90),
    Rule(Post, 90),
    Rule(TurnRow, 90),
    Rule(Delivery, 30, {"state": ("in", ["delivered", "dead", "quiet"])}),
    Rule(HookRun, 90, {"state": ("in", ["skipped", "completed", "failed"])}),
    Rule(Approval, 90, {"state": ("in", _DECIDED)}),
    Rule(TokenUsage, 365),
    Rule(Audit, 365),
)
DAYS: dict[str, int] = {rule.kind.table: rule.days for rule in _LOGS} | {"task_events": 365, "sessions": 365}
assert DAYS.keys() == set(get_args(Aged))


async def sweep(store: Store, at: datetime, days: Mapping[str, int], going: Going) -> dict[str, int]:
    """Delete what is too old, oldest first; how many rows of each table. `days` differ from ours, 0 is for ever."""
    found: dict[str, int] = {}
    bounds = {table: at - timedelta(days=kept) for table, kept in {**DAYS, **days}.items() if kept}
    for rule in _LOGS:
        if rule.kind.table in bounds:
            where = {**rule.where, "created_at": ("lt", bounds[rule.kind.table])}
            found[rule.kind.table] = await _slices(store, rule.kind, where, going)
    if "task_events" in bounds:
        found["task_events"] = await _transitions(store, bounds["task_events"], going)
    if "sessions" in bounds:
        found["sessions"] = await _conversations(store, bounds["sessions"], going)
    return {table: count for table, count in found.items() if count}


async def _slices(store: Store, kind: type[Row], where: Mapping[str, Any], going: Going) -> int:
    count = 0
    while await going():
        last = await store.select(kind, where, order=[("created_at", "asc")], limit=1, offset=SLICE - 1)
        some = {**where, "created_at": ("le", last[0].created_at)} if last else where
        count += await store.delete(kind, some)
        if not last:
            break
    return count


async def _transitions(store: Store, bound: datetime, going: Going) -> int:
    """Of tasks that are gone or put into the archive; whether one was merged is read from its row for ever."""
    count = passed = 0
    where = {"created_at": ("lt", bound)}
    while await going():
        rows = await store.select(
            TaskEvent, where, order=[("created_at", "asc")], limit=IN_LIMIT, offset=passed
        )
        if not rows:
            break
        tasks = await store.select(Task, {"id": ("in", sorted({row.task_id for row in rows}))})
        needed = {task.id for task in tasks if not task.archived or task.status not in _ENDED}
        old = [row.id for row in rows if row.task_id not in needed and row.event != "merged"]
        if old:
            count += await store.delete(TaskEvent, {"id": ("in", old)})
        passed += len(rows) - len(old)
    return count


async def _conversations(store: Store, bound: datetime, going: Going) -> int:
    """Those in which nobody said anything since, unless a task or a request for permission belongs to them."""
    count = passed = 0
    where = {"last_active_at": ("lt", bound)}
    while await going():
        rows = await store.select(
            Session, where, order=[("last_active_at", "asc")], limit=IN_LIMIT, offset=passed
        )
        if not rows:
            break
        needed = await _needed(store, [row.key for row in rows])
        for row in rows:
            if row.key in needed:
                passed += 1
                continue
            await store.delete(ConversationMessage, {"session_id": row.key, "created_at": ("lt", bound)})
            await store.delete(
                SnapshotRow, {"session_id": row.key, "kind": "summary", "created_at": ("lt", bound)}
            )
            count += await store.delete(Session, {"id": row.id, **where})
    return count


async def _needed(store: Store, keys: list[str]) -> set[str]:
    tasks = await store.select(Task, {"session_id": ("in", keys)})
    asked = await store.select(Approval, {"session_id": ("in", keys), "state": "pending"})
    needed = {task.session_id for task in tasks if task.status != "COMPLETED" and not task.archived}
    return {key for key in (*needed, *(row.session_id for row in asked)) if key}
