"""When a hook is due: by an interval, by a cron expression (UTC), or by an event."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from shared.errors import UsageError
from shared.store.records import Hook, TaskEvent

FAR = timedelta(days=366 * 5)
_REFUSED = timedelta(seconds=10)  # until one that is due and was refused is tried again


def due(hook: Hook, now: datetime) -> datetime | None:
    """The moment for which a hook is to be launched now, None where there is none.

    Moments that passed while nobody looked count as one: the last of them.
    """
    base = hook.launched_at or hook.created_at
    match hook.trigger.get("type"):
        case "periodic":
            moment = base + timedelta(seconds=float(hook.trigger["interval_seconds"]))
            return moment if moment <= now else None
        case "cron":
            last = _latest(str(hook.trigger["cron"]), now)
            return last if last is not None and last > base else None
    return None


def next_look(hook: Hook, now: datetime) -> datetime | None:
    """When the clock alone may launch a hook next; None where it never does."""
    if not hook.enabled or hook.trigger.get("type") not in ("periodic", "cron"):
        return None
    if due(hook, now) is not None:  # it was refused: it rests, or ran as often as it may today
        rested = hook.launched_at + timedelta(seconds=hook.cooldown_seconds) if hook.launched_at else now
        return max(rested, now + _REFUSED)
    if hook.trigger["type"] == "periodic":
        return (hook.launched_at or hook.created_at) + timedelta(
            seconds=float(hook.trigger["interval_seconds"])
        )
    try:
        return next(_moments(str(hook.trigger["cron"]), now), None)
    except UsageError:  # of a release that read it otherwise
        return None


def _latest(expression: str, now: datetime) -> datetime | None:
    try:
        # It looks from a whole second backwards, that second left out.
        whole = now.astimezone(UTC).replace(microsecond=0)
        return next(CronSim(expression, whole + timedelta(seconds=1), reverse=True))
    except (CronSimError, StopIteration):
        return None


def upcoming(hook: Hook, now: datetime, count: int = 5) -> list[datetime]:
    """When a hook will be launched next, its cooldown counted in; [] for one that waits for an event.

    UsageError for a cron expression that is none.
    """
    rest = timedelta(seconds=hook.cooldown_seconds)
    free = hook.launched_at + rest if hook.launched_at else now
    base = hook.launched_at or hook.created_at
    found: list[datetime] = []
    if hook.trigger.get("type") == "periodic":
        pause = max(timedelta(seconds=float(hook.trigger["interval_seconds"])), rest)
        first = max(base + timedelta(seconds=float(hook.trigger["interval_seconds"])), free, now)
        found = [first + n * pause for n in range(count)]
    elif hook.trigger.get("type") == "cron":
        for moment in _moments(str(hook.trigger["cron"]), now):
            if moment >= free:
                found.append(moment)
                free = moment + rest
            if len(found) == count or moment > now + FAR:
                break
    return found


def _moments(expression: str, now: datetime) -> CronSim:
    try:
        return CronSim(expression, now.astimezone(UTC))
    except CronSimError as error:
        raise UsageError(f"{expression!r} is no cron expression", str(error), "e.g. 0 9 * * 1-5") from None


def names(event: TaskEvent) -> tuple[str, ...]:
    """The event types that a transition of a task stands for: `task_completed`, `task.retried`.

    What leaves the task in its state, as a merge does, stands for itself alone. A change of the project itself is
    `project.paused`, `project.edited`.
    """
    if event.task_id == event.project_id:
        return (f"project.{event.event.removeprefix('project_')}",)
    status = "created" if event.event == "created" else str(event.to_status or "").lower()
    reached = (f"task_{status}",) if status and event.from_status != event.to_status else ()
    return (*reached, f"task.{event.event}")


def wants(hook: Hook, types: Collection[str]) -> bool:
    """Whether an event of one of these types triggers the hook."""
    return hook.trigger.get("type") == "event" and hook.trigger.get("event_type") in types
