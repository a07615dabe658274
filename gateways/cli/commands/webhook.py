"""`webhook`: programs that are told by HTTP of what happens, signed."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from gateways.cli import subscribing
from gateways.cli.options import Json, Project, User, Yes, group
from gateways.cli.run import run

app = group()
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name, as webhook list shows it.")]
Events = Annotated[
    str,
    typer.Option(
        "--events",
        help="Which, with commas: attention (what needs a person), task, turn, all, or single ones.",
    ),
]
Everything = Annotated[bool, typer.Option("--everybody", help="What everybody does, not only you.")]
Called = Annotated[str, typer.Option("--name", help="What it is called; after its host by default.")]


@app.command("add")
def add(
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="Where it is sent to; asked for where it is left out.")
    ] = None,
    *,
    user: User,
    events: Events = "attention,task",
    name: Called = "",
    project: Project = None,
    everybody: Everything = False,
    as_json: Json = False,
) -> NoReturn:
    """Tell a program of events: POST, signed as Standard Webhooks says. Its secret is shown once."""
    run(
        lambda settings: subscribing.add(
            settings, "webhook", url, events, user, name, project or "", everybody, as_json
        )
    )


@app.command("list")
def list_(user: User, as_json: Json = False) -> NoReturn:
    """Who is told, whether it arrives, what waits and what was given up."""
    run(lambda settings: subscribing.listed(settings, "webhook", user, as_json))


@app.command("test")
def test(name: Name, user: User, as_json: Json = False) -> NoReturn:
    """Send one event now, and say how it went."""
    run(lambda settings: subscribing.test(settings, "webhook", name, user, as_json))


@app.command("retry")
def retry(name: Name, user: User, as_json: Json = False) -> NoReturn:
    """Send what waits and what was given up now, and go on with one that was switched off."""
    run(lambda settings: subscribing.retry(settings, "webhook", name, user, as_json))


@app.command("remove")
def remove(name: Name, user: User, yes: Yes = False, as_json: Json = False) -> NoReturn:
    """Tell it no more; what is on its way is dropped."""
    run(lambda settings: subscribing.remove(settings, "webhook", name, yes, user, as_json))
