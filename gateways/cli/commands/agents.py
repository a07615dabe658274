"""`agents`: who is known, and taking one off the roster."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.options import Json, group
from gateways.cli.run import run
from shared.client import Client
from shared.client.views import agents as roster
from shared.settings import Settings

app = group()


@app.command("list")
def list_(as_json: Json = False) -> NoReturn:
    """All agents: here or not, whose they are, and what they are for."""
    run(lambda settings: _list(settings, as_json))


@app.command("forget")
def forget(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.agents)],
    force: Annotated[bool, typer.Option("--force", help="What waits for it goes too.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Take an agent that is gone off the roster."""
    run(lambda settings: _forget(settings, name, force, as_json))


async def _list(settings: Settings, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await roster.known(client)
    if as_json:
        screen.document("agents", agents=[one.card() for one in found])
        return
    rows = [(one.name, one.state, one.kind, one.workers, one.waiting, one.why or one.about) for one in found]
    screen.table(rows, ("agent", "state", "kind", "workers", "waiting", "about"))


async def _forget(settings: Settings, name: str, force: bool, as_json: bool) -> None:
    async with Client(settings) as client:
        gone = await roster.forget(client, name, force)
    if as_json:
        screen.document("agent_forgotten", agent=name, entries=gone)
    else:
        screen.out(f"{name} is forgotten" + (f", and {gone} entries with it" if gone else ""))
