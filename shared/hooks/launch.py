"""Which hooks are launched: a run is a row, written once for each moment or event that asked for it.

A launch is refused while the hook rests from its last one, while a run of it is in flight, beyond its runs of
a day, and beyond a chain of hooks that set each other off. Nobody but a person's `fire_hook` overrides the rest.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from shared.errors import Conflict
from shared.store.base import Store
from shared.store.records import Hook, HookRun
from shared.store.row import derived

AT_ONCE = 2  # runs in all
DEPTH = 3  # hooks in a chain
DAILY = 100  # runs of a hook in a day, where it names no number
SESSION = "hook:"  # how the sessions of runs begin; the run's id follows
IN_FLIGHT = "it is running already"
WAITING = "waiting"  # in a run's event: it was asked for, and is not begun


def resting(hook: Hook, at: datetime) -> bool:
    """Whether its cooldown, counted from the last launch, is not over."""
    return hook.launched_at is not None and at < hook.launched_at + timedelta(seconds=hook.cooldown_seconds)


async def launch(
    store: Store,
    hook: Hook,
    key: str,
    trigger: str,
    at: datetime,
    event: dict[str, Any] | None = None,
    depth: int = 0,
    by_hand: bool = False,
) -> HookRun | str:
    """The run that was asked for, or why there is none. One `key` makes one run, whoever asks how often."""
    run = HookRun(
        id=derived("hook-run", str(hook.id), key),
        hook_id=hook.id,
        project_id=hook.project_id,
        trigger=trigger,
        event={**(event or {}), WAITING: True},
        depth=depth,
        started_at=at,
    )
    known = await store.select(HookRun, {"id": run.id}, limit=1)
    if known:
        await _launched(store, hook, known[0].started_at)
        return "it was launched for this already"
    if why := await _refusal(store, hook, at, depth, by_hand):
        return why
    try:
        await store.insert(run)
    except Conflict:
        return "it was launched for this already"
    await _launched(store, hook, at)
    return run


async def _launched(store: Store, hook: Hook, at: datetime) -> None:
    """Note the launch at its hook: after the run, which alone says whether there was one."""
    if hook.launched_at is None or hook.launched_at < at:
        await store.update(Hook, {"launched_at": at}, {"id": hook.id})


async def _refusal(store: Store, hook: Hook, at: datetime, depth: int, by_hand: bool) -> str:
    if depth > DEPTH:
        return f"hooks set each other off {DEPTH} times in a row already"
    if not by_hand and (not hook.enabled or resting(hook, at)):
        return "it rests from its last launch" if hook.enabled else "it is switched off"
    if await store.count(HookRun, {"hook_id": hook.id, "state": "running"}):
        return IN_FLIGHT
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    cap = DAILY if hook.daily_cap is None else hook.daily_cap
    if await store.count(HookRun, {"hook_id": hook.id, "created_at": ("ge", day)}) >= cap:
        return f"it ran {cap} times today"
    return ""


async def depth_in(store: Store, session: str | None) -> int:
    """How deep in a chain of hooks something is that was done in this session, or in a consult from it."""
    if not (session or "").startswith(SESSION):
        return 0
    try:
        id = UUID(str(session)[len(SESSION) :][:36])
    except ValueError:
        return 0
    rows = await store.select(HookRun, {"id": id}, limit=1)
    return rows[0].depth + 1 if rows else 1


def waits(run: HookRun) -> bool:
    """Whether a run was asked for and is not begun."""
    return run.session_id is None and bool(run.event.get(WAITING))


async def begin(store: Store, run: HookRun, session: str) -> HookRun | None:
    """Make a waiting run ours; None where another was first."""
    event = {key: value for key, value in run.event.items() if key != WAITING}
    found = await store.update(
        HookRun,
        {"session_id": session, "event": event},
        {"id": run.id, "state": "running", "session_id": None},
    )
    return found[0] if found else None


async def end(store: Store, run: HookRun, state: str, at: datetime, **changes: Any) -> bool:
    """Close a run; False for one that is closed already."""
    done = {"state": state, "ended_at": at, **changes}
    return bool(await store.update(HookRun, done, {"id": run.id, "state": "running"}))
