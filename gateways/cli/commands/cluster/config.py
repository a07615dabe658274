"""`config`: the settings in force."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import typer

from gateways.cli import screen
from shared.client.local import trust as trusting
from shared.client.local.facts import facts
from shared.errors import UsageError
from shared.settings import Settings


async def show(settings: Settings, as_json: bool) -> None:
    """Each with where it comes from; secrets only as set."""
    rows = facts(settings)
    if as_json:
        screen.document("config", settings=rows)
        return
    screen.table(
        [(r["name"], r["source"], "" if r["value"] in (None, []) else r["value"]) for r in rows],
        ("name", "from", "value"),
    )


async def home(settings: Settings, as_json: bool) -> None:
    """Where the data lies, for other commands to use."""
    if as_json:
        screen.document("home", home=str(settings.home), exists=settings.home.is_dir())
    else:
        screen.out(str(settings.home))


def trust(folder: Path) -> NoReturn:
    """From now on what lies in this folder counts."""
    try:
        print(f"Trusted: {trusting.trust(folder)}")
    except OSError as error:
        screen.complain(UsageError(f"{folder} cannot be trusted", error.strerror or "", "name a folder"))
        raise typer.Exit(2) from None
    raise typer.Exit(0)
