"""`hooks`: what runs by itself, and the leave of a person for what it does."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from gateways.cli import screen
from gateways.cli.calling import call
from gateways.cli.run import me, run
from shared.settings import Settings

app = typer.Typer(rich_markup_mode=None, help="What runs by itself.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
User = Annotated[str, typer.Option("--user", help="Who allows it.", default_factory=me)]


@app.command("list")
def list_(user: User, as_json: Json = False) -> NoReturn:
    """All hooks: who made them, who allowed their steps, what was read for them."""
    run(lambda settings: _list(settings, user, as_json))


@app.command("allow")
def allow(
    hook: Annotated[str, typer.Argument(metavar="NAME")], user: User, as_json: Json = False
) -> NoReturn:
    """Allow the steps of a hook exactly as they are now."""
    run(lambda settings: _allow(settings, hook, user, as_json))


async def _list(settings: Settings, user: str, as_json: bool) -> None:
    found = (await call(settings, "list_hooks", user, {}))["hooks"]
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
    screen.table(rows, ("id", "", "trigger", "made by", "steps allowed by", "made after reading"))


async def _allow(settings: Settings, hook: str, user: str, as_json: bool) -> None:
    told = await call(settings, "allow_hook", user, {"hook_id": hook})
    if as_json:
        screen.document("hook_allowed", **told)
        return
    for step in told["context_steps"]:
        does = next((step[key] for key in ("command", "url", "query", "path") if step.get(key)), "")
        screen.out(f"{step.get('type', '')}  {does}")
    screen.out(f"{told['allowed']}: these steps are allowed as they are now")
