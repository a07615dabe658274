"""`hooks`: what runs by itself, what its runs came to, and the permission of a person for what it does."""

from __future__ import annotations

import json
import shlex
from typing import Annotated, Any, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call, result_for_people
from gateways.cli.options import Project, Yes, group
from gateways.cli.run import me, run
from shared.client.text.matching import pick
from shared.settings import Settings

app = group()
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
User = Annotated[
    str, typer.Option("--user", help="Who speaks or decides; you by default.", default_factory=me)
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name, or a part of it.", autocompletion=complete.hooks)
]


@app.command("list")
def list_(user: User, project: Project = None, as_json: Json = False) -> NoReturn:
    """All hooks: who made them, who allowed their steps, what was read for them."""
    run(lambda settings: _list(settings, project, user, as_json))


@app.command("show")
def show(hook: Name, user: User, as_json: Json = False) -> NoReturn:
    """One hook: what launches it, what it looks at, what it asks for."""
    run(lambda settings: _show(settings, hook, user, as_json))


@app.command("runs")
def runs(
    hook: Name,
    user: User,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="At most so many.")] = 10,
    as_json: Json = False,
) -> NoReturn:
    """What the runs of a hook came to, the newest first."""
    run(lambda settings: _runs(settings, hook, limit, user, as_json))


@app.command("on")
def on(hook: Name, user: User, as_json: Json = False) -> NoReturn:
    """Let a hook run by itself."""
    run(lambda settings: _switch(settings, hook, True, user, as_json))


@app.command("off")
def off(hook: Name, user: User, as_json: Json = False) -> NoReturn:
    """Launch a hook no more by itself; what runs goes on."""
    run(lambda settings: _switch(settings, hook, False, user, as_json))


@app.command("run")
def fire(
    hook: Name,
    user: User,
    dry: Annotated[
        bool, typer.Option("--dry", help="Say what it would do; only steps that read are taken.")
    ] = False,
    as_json: Json = False,
) -> NoReturn:
    """Run a hook now, whatever its cooldown."""
    run(lambda settings: _fire(settings, hook, dry, user, as_json))


@app.command("delete")
def delete(hook: Name, user: User, yes: Yes = False, as_json: Json = False) -> NoReturn:
    """Delete a hook and the history of its runs for good."""
    run(lambda settings: _delete(settings, hook, yes, user, as_json))


@app.command("allow")
def allow(hook: Name, user: User, as_json: Json = False) -> NoReturn:
    """Allow the steps of a hook exactly as they are now."""
    run(lambda settings: _allow(settings, hook, user, as_json))


async def _list(settings: Settings, project: str | None, user: str, as_json: bool) -> None:
    given = {"project_id": project} if project else {}
    found = (await call(settings, "list_hooks", user, given))["hooks"]
    if as_json:
        screen.document("hooks", hooks=found)
        return
    rows = [
        (
            hook["id"],
            "on" if hook["enabled"] else "off",
            hook["trigger"].get("type", ""),
            hook.get("made_by") or "unknown",
            hook.get("allowed_by") or "nobody",
            hook.get("made_after_reading", ""),
        )
        for hook in found
    ]
    screen.table(
        rows,
        ("id", "", "trigger", "made by", "steps allowed by", "made after reading"),
        "There are no hooks; ask Chatter for one, as: every morning at 9, tell me which tasks failed",
    )


async def _known(settings: Settings, typed: str, user: str) -> dict[str, Any]:
    """The hook of which a person typed a part."""
    found = {hook["id"]: hook for hook in (await call(settings, "list_hooks", user, {}))["hooks"]}
    return dict(found[pick(typed, found, "hook", "promptdock hooks list shows them")])


async def _show(settings: Settings, typed: str, user: str, as_json: bool) -> None:
    hook = await _known(settings, typed, user)
    if as_json:
        screen.document("hook", **hook)
        return
    switched = screen.state("on" if hook["enabled"] else "off")
    screen.out(
        screen.strong(hook["id"]), f"  {hook['name']}  ", switched, f"  of project {hook['project_id']}"
    )
    screen.out(f"  launched {_launched(hook['trigger'])}; rests {_span(hook['cooldown_seconds'])} after it")
    if hook["daily_cap"] is not None:
        screen.out(f"  at most {hook['daily_cap']} runs a day")
    if hook["max_tokens_per_run"] is not None:
        screen.out(f"  at most {hook['max_tokens_per_run']} tokens a run")
    for key, value in hook["llm_config"].items():
        screen.out(f"  {key} {value}")
    for step in hook["context_steps"]:
        screen.out(f"  step {_step(step)}")
    screen.out(f"  made by {hook['made_by'] or 'unknown'}, steps allowed by {hook['allowed_by'] or 'nobody'}")
    if read := hook.get("made_after_reading"):
        screen.out(f"  made after reading {read}")
    if hook["last_launched"]:
        screen.out(f"  last launched {screen.moment(hook['last_launched'])}")
    if hook["next_runs"]:
        screen.out(f"  next {', '.join(map(screen.moment, hook['next_runs']))}")
    screen.out("\n" + hook["prompt_template"])


def _launched(trigger: dict[str, Any]) -> str:
    """What launches it, as it goes on behind `launched`."""
    match trigger.get("type"):
        case "periodic":
            return f"every {_span(trigger['interval_seconds'])}"
        case "cron":
            return f"by the clock, {trigger['cron']}"
        case "event":
            return f"on the event {trigger['event_type']}"
    return json.dumps(trigger)


def _span(seconds: float) -> str:
    """Seconds as they were given: no rounding that would hide some."""
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:g} {word}"
    return f"{seconds:g} s"


def _step(step: dict[str, Any]) -> str:
    does = next((step[key] for key in ("command", "url", "query", "path") if step.get(key)), "")
    return f"{step.get('type', '')}  {does}".rstrip()


async def _runs(settings: Settings, typed: str, limit: int, user: str, as_json: bool) -> None:
    result = await result_for_people(
        settings, "list_hook_runs", "hook_runs", user, as_json, hook_id=typed, limit=limit
    )
    if result is None:
        return
    rows = [
        (
            screen.moment(one["started_at"]),
            screen.state(one["state"]),
            one["trigger"],
            one["tokens_used"],
            one["error"] or one["response"],
        )
        for one in result["runs"]
    ]
    slug = result["hook_id"]
    screen.table(
        rows,
        ("began", "state", "launched by", "tokens", "came to"),
        f"{slug} has not run yet; now with: promptdock hooks run {slug}",
    )


async def _switch(settings: Settings, typed: str, enabled: bool, user: str, as_json: bool) -> None:
    given = {"hook_id": typed, "enabled": enabled}
    result = await result_for_people(settings, "edit_hook", "hook_switched", user, as_json, **given)
    if result is None:
        return
    screen.out(f"{result['updated']} is {'on' if enabled else 'off'}")
    if "warning" in result:
        screen.talk(result["warning"])


async def _fire(settings: Settings, typed: str, dry: bool, user: str, as_json: bool) -> None:
    given = {"hook_id": typed, "dry_run": dry}
    result = await result_for_people(settings, "fire_hook", "hook_run", user, as_json, **given)
    if result is None:
        return
    if not dry:
        screen.out(f"{result['fired']} is running")
        screen.talk(f"what it comes to: promptdock hooks runs {result['fired']}")
        return
    for step in result["steps"]:
        found = {key: value for key, value in step.items() if key != "type"}
        shown = found.get("not_run") or json.dumps(found, ensure_ascii=False)
        screen.out(f"step {step['type']}  {shown}")
    screen.out(f"it would {result['would']}" + (":" if result["would"] == "ask" else ""))
    if result["would"] == "ask":
        screen.out("\n" + result["prompt"])


async def _delete(settings: Settings, typed: str, yes: bool, user: str, as_json: bool) -> None:
    slug = str((await _known(settings, typed, user))["id"])
    again = f"promptdock hooks delete {shlex.quote(slug)}"
    screen.sure(f"this deletes the hook {slug} and the history of its runs for good", yes, again)
    result = await call(settings, "delete_hook", user, {"hook_id": slug}, exact=True)
    if as_json:
        screen.document("hook_delete", **result)
        return
    screen.out(f"{result['deleted']} is deleted")


async def _allow(settings: Settings, hook: str, user: str, as_json: bool) -> None:
    result = await result_for_people(settings, "allow_hook", "hook_allowed", user, as_json, hook_id=hook)
    if result is None:
        return
    for step in result["context_steps"]:
        screen.out(_step(step))
    screen.out(f"{result['allowed']}: these steps are allowed as they are now")
