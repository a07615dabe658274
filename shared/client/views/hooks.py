"""Hooks as people look at them: when each runs next, who allowed what it does, and what its runs came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.client.client import Client
from shared.errors import UsageError
from shared.hooks import permission, triggers
from shared.store.origin import Origin
from shared.store.records import Hook, HookRun, Project, now

_NEXT = 3


@dataclass(frozen=True)
class HookStep:
    """One thing that a hook looks at before it asks."""

    kind: str
    does: str


@dataclass(frozen=True)
class HookView:
    """One hook. `allowed_by` is who allowed exactly these steps; "" means that they are asked for."""

    id: str
    name: str
    project: str
    enabled: bool
    when: str
    steps: tuple[HookStep, ...]
    prompt: str
    agent: str
    cooldown: int
    daily_cap: int | None
    made_by: str
    allowed_by: str
    foreign: str
    launched: datetime | None
    upcoming: tuple[datetime, ...] = field(default=())


@dataclass(frozen=True)
class HookRunView:
    """One run, from its launch to its end."""

    hook: str
    at: datetime
    state: str
    trigger: str
    came_to: str
    tokens: int
    seconds: float | None
    turn: str


async def hooks(client: Client, project: str = "") -> list[HookView]:
    """All of them by name. Reads the Store."""
    store = await client.store()
    slugs = {row.id: row.slug for row in await store.select(Project)}
    rows = await store.select(Hook, order=[("slug", "asc")])
    return [
        _hook(row, slugs.get(row.project_id, ""))
        for row in rows
        if project in ("", slugs.get(row.project_id))
    ]


async def runs(client: Client, hook: str = "", limit: int = 30) -> list[HookRunView]:
    """The newest runs, of one hook or of all. UsageError for a hook that there is not."""
    store = await client.store()
    names = {row.id: row.slug for row in await store.select(Hook)}
    where: dict[str, Any] = {}
    if hook:
        ids = [id for id, slug in names.items() if slug == hook]
        if not ids:
            raise UsageError(f"there is no hook {hook!r}", "", "promptdock hooks list shows them")
        where["hook_id"] = ids[0]
    rows = await store.select(HookRun, where, order=[("created_at", "desc")], limit=limit)
    return [
        HookRunView(
            hook=names.get(row.hook_id, ""),
            at=row.started_at,
            state=row.state,
            trigger=row.trigger,
            came_to=row.error or row.response,
            tokens=row.tokens_used,
            seconds=(row.ended_at - row.started_at).total_seconds() if row.ended_at else None,
            turn=row.turn_id or "",
        )
        for row in rows
    ]


def _hook(row: Hook, project: str) -> HookView:
    made = Origin.of(row.origin)
    try:
        coming = tuple(triggers.upcoming(row, now(), _NEXT)) if row.enabled else ()
    except UsageError:  # of a release that read it otherwise
        coming = ()
    return HookView(
        id=row.slug,
        name=row.name,
        project=project,
        enabled=row.enabled,
        when=_when(row.trigger),
        steps=tuple(_step(step) for step in row.context_steps),
        prompt=row.prompt_template,
        agent=str(row.agent or row.llm_config.get("agent") or ""),
        cooldown=row.cooldown_seconds,
        daily_cap=row.daily_cap,
        made_by=made.by,
        allowed_by=permission.granted_by(row, project) or "",
        foreign=made.foreign,
        launched=row.launched_at,
        upcoming=coming,
    )


def _when(trigger: Mapping[str, Any]) -> str:
    match trigger.get("type"):
        case "periodic":
            return f"every {span(float(trigger['interval_seconds']))}"
        case "cron":
            return f"by the clock: {trigger['cron']}"
        case "event":
            return f"on {trigger['event_type']}"
    return str(trigger.get("type") or "")


def span(seconds: float) -> str:
    """Seconds in the largest unit that hides none of them."""
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {word}"
    return f"{seconds:g} s"


def _step(step: Mapping[str, Any]) -> HookStep:
    does = next((str(step[key]) for key in ("command", "url", "query", "path") if step.get(key)), "")
    return HookStep(str(step.get("type") or ""), does)
