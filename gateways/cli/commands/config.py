"""`config`: the settings in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from gateways.cli import screen
from gateways.cli.options import Json, group
from gateways.cli.run import run

if TYPE_CHECKING:
    from shared.settings import Settings

app = group()


@app.command()
def home(as_json: Json = False) -> NoReturn:
    """Print the data folder of this folder."""
    run(lambda settings: _home(settings, as_json), lenient="list")


@app.command()
def show(as_json: Json = False) -> NoReturn:
    """The settings in force and where each comes from, without secrets."""
    run(lambda settings: _show(settings, as_json), lenient="tell")


async def _home(settings: Settings, as_json: bool) -> None:
    """Where the data lies, for other commands to use."""
    if as_json:
        screen.document("home", home=str(settings.home), exists=settings.home.is_dir())
    else:
        screen.out(str(settings.home))


async def _show(settings: Settings, as_json: bool) -> None:
    """Each with where it comes from; secrets only as set."""
    from shared.client.local.facts import facts

    rows = facts(settings)
    if as_json:
        screen.document("config", settings=rows)
        return
    screen.table(
        [(r["name"], r["source"], "" if r["value"] in (None, []) else r["value"]) for r in rows],
        ("name", "from", "value"),
    )
