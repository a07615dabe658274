"""Tools of category hooks: hooks as rows. Where nothing launches them, the tools say so."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared import failpoints
from shared.bus.messages import RESERVED
from shared.errors import Conflict, ToolError
from shared.guard.permissions.touching import TouchKind, When, touching
from shared.hooks import permission, steps
from shared.hooks.triggers import upcoming
from shared.store.origin import MADE, marked
from shared.store.records import Hook, HookRun, Project, new_id, now
from shared.tools import lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.detail import digest, words
from shared.tools.registry import Result

category = tier("hooks")

NOT_YET = "hooks are kept, but nothing launches them here"

_AGENT = r"[a-z0-9][a-z0-9_.-]{0,63}"
HookName = Annotated[str, Field(min_length=1, max_length=100)]
Template = Annotated[str, Field(min_length=1, max_length=50_000)]
Seconds = Annotated[int, Field(ge=0, le=366 * 24 * 3600)]
Tokens = Annotated[int, Field(ge=1, le=10_000_000)]
Runs = Annotated[int, Field(ge=0, le=10_000)]


class _Trigger(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)

    type: Literal["periodic", "cron", "event"]
    interval_seconds: Annotated[int, Field(ge=10, le=366 * 24 * 3600)] | None = None
    cron: Annotated[str, Field(max_length=200)] | None = None
    event_type: Annotated[str, Field(min_length=1, max_length=100)] | None = None


class _Step(BaseModel):
    """A context step; what else it holds is for the kind of step."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    type: Literal["shell", "read_file", "http", "db_query", "git_diff"]


_NEEDED = {"shell": "command", "read_file": "path", "http": "url", "db_query": "query", "git_diff": ""}
_GIVEN = {"periodic": "interval_seconds", "cron": "cron", "event": "event_type"}


def _hook(arguments: dict[str, Any]) -> str:
    return str(arguments.get("hook_id") or lookup.kebab(str(arguments.get("name", ""))))


_ACTS = ("trigger", "context_steps", "prompt_template", "llm_config")  # what a hook does, and when


def _kinds(looks: Any) -> list[str]:
    return list(dict.fromkeys(str(step.get("type")) for step in looks or () if isinstance(step, dict)))


def _looking(arguments: dict[str, Any]) -> str:
    """The hook, the kinds of what it looks at, and a name for all of it: `nightly shell 1f0c…`."""
    return words(_hook(arguments), *_kinds(arguments.get("context_steps")), digest(arguments))


_STEP: dict[str, TouchKind] = {"shell": "command", "http": "address"}
_looks = When(tuple(_STEP.values()), lambda steps: [_STEP[kind] for kind in _kinds(steps) if kind in _STEP])


def _later(arguments: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    project = str(arguments.get("project_id") or "")
    return steps.calls(arguments.get("context_steps") or [], project)


@category.tool(
    effect="keyed", detail=_looking, touches=touching("schedule", context_steps=_looks), later=_later
)
async def create_hook(
    here: Context,
    project_id: str,
    name: HookName,
    trigger: dict[str, Any],
    prompt_template: Template,
    context_steps: list[dict[str, Any]] | None = None,
    cooldown_seconds: Seconds = 3600,
    llm_config: dict[str, Any] | None = None,
    daily_cap: Runs | None = None,
) -> Result:
    """Create a hook that automatically triggers actions; `daily_cap` is how often it may run in a day.

    trigger is {"type": "periodic", "interval_seconds": n}, {"type": "cron", "cron": "0 9 * * 1-5"} or
    {"type": "event", "event_type": name}; context_steps are {"type": shell|read_file|http|db_query|git_diff, …}.
    """
    project: Project = await lookup.project(here.store, project_id)
    slug = lookup.kebab(name)
    if not slug:
        raise ToolError(f"{name!r} is no name for a hook", "it has no letter or digit", "choose another")
    row = Hook(
        id=lookup.identity(here, "hook"),
        slug=slug,
        project_id=project.id,
        name=name,
        trigger=_trigger(trigger),
        context_steps=_steps(context_steps or []),
        prompt_template=prompt_template,
        cooldown_seconds=cooldown_seconds,
        llm_config=_config(llm_config or {}),
        daily_cap=daily_cap,
        origin=here.origin.kept(),
    )
    row = row.model_copy(update={"allowed": permission.grant(_person(here), row.context_steps, project.slug)})
    known = await lookup.first(here.store, Hook, slug=slug)
    if known is None or known.id != row.id:
        try:
            await here.store.insert(row)
        except Conflict:
            raise ToolError(f"there is a hook {slug!r} already", "", "choose another name") from None
    result = {"created": slug, "name": name, "project_id": project.slug}
    return result | _idle(here) | await _nobody(here, row.llm_config)


def _person(here: Context) -> str:
    """Who allowed this very call, or called it themselves; "" where it needed nobody's permission."""
    return here.allowed_by or (here.user_id if here.by_person else "")


def _config(given: dict[str, Any]) -> dict[str, Any]:
    """What a hook says of its agent; ToolError for a name that no agent can have."""
    agent, model = given.get("agent"), given.get("model")
    named = isinstance(agent, str) and re.fullmatch(_AGENT, agent) and agent not in RESERVED
    if agent is not None and not named and not failpoints.without("hook-agent"):
        raise ToolError(
            "this llm_config cannot be used",
            f"{str(agent)[:50]!r} is no name of an agent",
            "letters, digits, - and _, as list_agents shows them",
        )
    if model is not None and not isinstance(model, str):
        raise ToolError("this llm_config cannot be used", "model is the name of one", "")
    return given


async def _nobody(here: Context, config: dict[str, Any]) -> Result:
    """A warning where the agent that is to be asked was never seen."""
    agent = config.get("agent")
    if agent and here.cluster is not None and agent not in await here.cluster.roster():
        return {"warning": f"no agent {agent!r} has been seen here: the hook's runs fail until it is started"}
    return {}


def _trigger(given: dict[str, Any]) -> dict[str, Any]:
    try:
        trigger = _Trigger.model_validate(given)
    except ValidationError as error:
        raise ToolError("this trigger cannot be used", _told(error), "see the tool's description") from None
    needed = _GIVEN[trigger.type]
    told = trigger.model_dump(exclude_none=True)
    if set(told) != {"type", needed}:
        raise ToolError(
            "this trigger cannot be used", f"one that is {trigger.type} has {needed} and nothing else", ""
        )
    if trigger.cron is not None and not _is_cron(trigger.cron):
        raise ToolError(
            f"{trigger.cron[:100]!r} is no cron expression",
            "it has five parts: minute, hour, day, month, weekday",
            "e.g. 0 9 * * 1-5",
        )
    return told


def _is_cron(text: str) -> bool:
    from cronsim import CronSim, CronSimError

    try:
        CronSim(text, now())
    except CronSimError:
        return False
    return True


def _idle(here: Context) -> Result:
    """A warning where nothing would launch a hook."""
    return {} if here.services else {"warning": NOT_YET}


def _steps(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(given) > 20:
        raise ToolError("these context steps cannot be used", "there are more than 20", "use fewer")
    for number, step in enumerate(given):
        try:
            kind = _Step.model_validate(step).type
        except ValidationError as error:
            raise ToolError(f"context step {number} cannot be used", _told(error), "") from None
        needed = _NEEDED[kind]
        if needed and not str(step.get(needed) or "").strip():
            raise ToolError(f"context step {number} cannot be used", f"a {kind} step needs {needed}", "")
    return given


def _told(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:5])


@category.tool(
    effect="pure",
    detail=lambda arguments: str(arguments.get("project_id") or ""),
    touches=touching("records"),
)
async def list_hooks(here: Context, project_id: str | None = None) -> Result:
    """List hooks, optionally filtered by project."""
    where = {"project_id": (await lookup.project(here.store, project_id)).id} if project_id else None
    names = await lookup.projects(here.store)
    rows = await here.store.select(Hook, where, order=[("slug", "asc")])
    slugs = {row.id: names.get(row.project_id, "") for row in rows}
    result: Result = {
        "hooks": [
            {
                "id": row.slug,
                "name": row.name,
                "project_id": names.get(row.project_id, ""),
                "enabled": row.enabled,
                "trigger": row.trigger,
                "context_steps": row.context_steps,
                "prompt_template": row.prompt_template,
                "cooldown_seconds": row.cooldown_seconds,
                "llm_config": row.llm_config,
                "max_tokens_per_run": row.max_tokens_per_run,
                "daily_cap": row.daily_cap,
                "last_launched": row.launched_at.isoformat() if row.launched_at else None,
                "next_runs": [at.isoformat() for at in upcoming(row, now(), 3)] if row.enabled else [],
                "made_by": row.origin.get("by") or None,
                "allowed_by": permission.granted_by(row, slugs[row.id]) or None,
                **marked([row]),
            }
            for row in rows
        ]
    }
    return result | _idle(here) | marked(rows)


@category.tool(
    effect="idempotent", detail=_looking, touches=touching("schedule", context_steps=_looks), later=_later
)
async def edit_hook(
    here: Context,
    hook_id: str,
    name: HookName | None = None,
    enabled: bool | None = None,
    trigger: dict[str, Any] | None = None,
    context_steps: list[dict[str, Any]] | None = None,
    prompt_template: Template | None = None,
    cooldown_seconds: Seconds | None = None,
    llm_config: dict[str, Any] | None = None,
    max_tokens_per_run: Tokens | None = None,
    daily_cap: Runs | None = None,
) -> Result:
    """Edit a hook's configuration: only what is given changes."""
    row = await lookup.hook(here.store, hook_id)
    given = {
        "name": name,
        "enabled": enabled,
        "trigger": None if trigger is None else _trigger(trigger),
        "context_steps": None if context_steps is None else _steps(context_steps),
        "prompt_template": prompt_template,
        "cooldown_seconds": cooldown_seconds,
        "llm_config": None if llm_config is None else _config(llm_config),
        "max_tokens_per_run": max_tokens_per_run,
        "daily_cap": daily_cap,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    if not changes:
        raise ToolError("nothing is to be changed", "no field was given", "give at least one")
    made: dict[str, Any] = (
        {"origin": here.origin.over(row.origin).kept()} if set(_ACTS) & set(changes) else {}
    )
    if "context_steps" in changes:
        project = (await lookup.projects(here.store)).get(row.project_id, "")
        made["allowed"] = permission.grant(_person(here), context_steps or [], project)
    row = await lookup.change(here.store, row, **changes, **made)
    result = {"updated": row.slug, "fields": list(changes)}
    return result | _idle(here) | await _nobody(here, llm_config or {})


@category.tool(effect="idempotent", detail=_hook, touches=touching("loss"))
async def delete_hook(here: Context, hook_id: str) -> Result:
    """Delete a hook and its run history."""
    row = await lookup.hook(here.store, hook_id)
    told = await lookup.removing(here, {"deleted": row.slug, "name": row.name})
    await here.store.delete(HookRun, {"hook_id": row.id})
    await here.store.delete(Hook, {"id": row.id})
    return told


@category.tool(effect="pure", detail=_hook, touches=touching("records"))
async def list_hook_runs(
    here: Context, hook_id: str, limit: Annotated[int, Field(ge=1, le=200)] = 10
) -> Result:
    """Show recent execution history for a hook, the newest first."""
    row = await lookup.hook(here.store, hook_id)
    order: Any = [("created_at", "desc")]
    runs = await here.store.select(HookRun, {"hook_id": row.id}, order=order, limit=limit)
    return {
        "hook_id": row.slug,
        "hook_name": row.name,
        "runs": [
            {
                "state": run.state,
                "trigger": run.trigger,
                "started_at": run.started_at.isoformat(),
                "ended_at": run.ended_at.isoformat() if run.ended_at else None,
                "tokens_used": run.tokens_used,
                "response": run.response[:1000],
                "error": run.error,
            }
            for run in runs
        ],
        # What a run came to was said by an agent, and found in what others wrote.
        **({MADE: f"runs of the hook {row.slug}"} if any(run.response or run.error for run in runs) else {}),
    }


@category.tool(effect="keyed", detail=_hook, touches=touching("schedule", "code"), foreign=True)
async def fire_hook(here: Context, hook_id: str, dry_run: bool = False) -> Result:
    """Manually trigger a hook immediately, ignoring cooldown. One that is running is not fired again.

    With dry_run it is told what would be done: steps that only read are taken, others are named. Nothing is launched.
    """
    row = await lookup.hook(here.store, hook_id)
    if dry_run:
        if here.services is None:
            raise ToolError(f"the hook {row.slug!r} cannot be tried here", NOT_YET, "")
        return await here.services.preview_hook(row, here.step_id or str(new_id()))
    if here.services is None:
        raise ToolError(
            f"the hook {row.slug!r} was not fired", NOT_YET, "do what its prompt says, as an ordinary task"
        )
    if await here.store.count(HookRun, {"hook_id": row.id, "state": "running"}):
        raise ToolError(f"the hook {row.slug!r} is running already", "", "see list_hook_runs")
    return await here.services.fire_hook(row, here, here.step_id or str(new_id()))
