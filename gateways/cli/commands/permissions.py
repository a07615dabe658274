"""`permissions`: what each profile allows, and what it would have decided of what happened."""

from __future__ import annotations

from typing import Annotated, Literal, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call
from gateways.cli.options import group
from gateways.cli.run import me, run
from shared.client import Client
from shared.settings import Settings

app = group()
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="PROFILE", help="A preset, an agent, or a stored profile.", autocompletion=complete.profiles
    ),
]
User = Annotated[str, typer.Option("--user", help="Who trusts.", default_factory=me)]
What = Literal[
    "conversation",
    "task",
    "note",
    "hook",
    "profile",
    "prompt",
    "memory",
    "project_profile",
    "repo",
    "workspace",
]
_SHOWN = 40  # changed decisions that are printed


@app.command("list")
def list_(as_json: Json = False) -> NoReturn:
    """All profiles by name; works with the cluster down."""
    run(lambda settings: _list(settings, as_json))


@app.command("show")
def show(name: Name, as_json: Json = False) -> NoReturn:
    """One profile: its rules, and what it says of each tool."""
    run(lambda settings: _show(settings, name, as_json))


@app.command("simulate")
def simulate(
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many of the newest checks.")] = 1000,
    as_json: Json = False,
) -> NoReturn:
    """Replay the audit log under a profile: what it would have decided, and what would change."""
    run(lambda settings: _simulate(settings, name, limit, as_json))


@app.command("trust")
def trust(
    user: User,
    what: Annotated[What, typer.Argument(help="What bears the mark.")] = "conversation",
    name: Annotated[str, typer.Argument(help="Which; of a conversation yours, or --session.")] = "",
    session: Annotated[
        str | None, typer.Option("--session", help="The conversation; yours by default.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="Of a note, a prompt, a memory, a repository.")] = None,
    as_json: Json = False,
) -> NoReturn:
    """Take the mark of foreign text off a conversation, a task, a note, a hook and the like."""
    run(lambda settings: _trust(settings, user, what, name, session, project, as_json))


async def _trust(
    settings: Settings,
    user: str,
    what: What,
    name: str,
    session: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    from shared.bus.messages import default_session

    own = session or default_session(user)
    given = {"what": what, "name": name, **({"project_id": project} if project else {})}
    told = await call(settings, "trust", user, given, session=own if what == "conversation" else "")
    if as_json:
        screen.document("trusted", **told)
    else:
        screen.out(f"{told['trusted']}: what was read until now is trusted")


async def _list(settings: Settings, as_json: bool) -> None:
    from shared.client.views.permissions import profiles

    async with Client(settings) as client:
        found = await profiles.listing(client)
    if as_json:
        screen.document("permissions", profiles=found)
    else:
        screen.table(
            [(one["name"], one["source"], one["policy"]) for one in found], ("name", "kind", "rules")
        )


async def _show(settings: Settings, name: str, as_json: bool) -> None:
    from shared.client.views.permissions import profiles

    async with Client(settings) as client:
        card = profiles.shown(await profiles.named(client, name))
    if as_json:
        screen.document("permission_profile", **card)
        return
    for layer in card["rules"]:
        for vote in ("deny", "allow", "ask"):
            for rule in layer[vote]:
                screen.out(f"{vote:5}  {rule}")
    for vote, names in card["tools"].items():
        screen.out(f"\n{vote} ({len(names)}): {', '.join(names) or 'none'}")


async def _simulate(settings: Settings, name: str, limit: int, as_json: bool) -> None:
    from shared.client.views.permissions import profiles

    async with Client(settings) as client:
        told = await profiles.simulate(client, await profiles.named(client, name), limit)
    if as_json:
        screen.document("permissions_simulation", profile=name, **told)
        return
    votes = ", ".join(f"{vote} {told['votes'].get(vote, 0)}" for vote in ("allow", "ask", "deny"))
    screen.out(f"{told['checks']} checks under {name}: {votes}; {len(told['changed'])} would change")
    reasons = [
        (str(one["checks"]), one["was"], one["would_be"], one["tool"], one["why"]) for one in told["reasons"]
    ]
    if reasons:
        screen.table(reasons[:_SHOWN], ("checks", "was", "would be", "tool", "why"))
        screen.out("")
    rows = [
        (one["was"], one["was_by"], one["would_be"], one["by"], one["agent"], one["action"])
        for one in told["changed"][:_SHOWN]
    ]
    if rows:
        screen.table(rows, ("was", "by", "would be", "by", "agent", "action"))
