"""`dead`: what could not be answered."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.options import Json, Letter, group
from gateways.cli.run import run
from shared.errors import UsageError

if TYPE_CHECKING:
    from shared.settings import Settings

app = group()


@app.command("list")
def list_(as_json: Json = False) -> NoReturn:
    """The dead letters, the newest first."""
    run(lambda settings: _list(settings, as_json))


@app.command()
def show(letter: Letter, as_json: Json = False) -> NoReturn:
    """One dead letter, whole."""
    run(lambda settings: _show(settings, letter, as_json))


@app.command()
def replay(letter: Letter, as_json: Json = False) -> NoReturn:
    """Post it again, under a new id."""
    run(lambda settings: _replay(settings, letter, as_json))


@app.command()
def drop(
    letter: Annotated[str | None, typer.Argument(metavar="KEY|ID", autocompletion=complete.dead)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Throw a dead letter away."""
    run(lambda settings: _drop(settings, letter, everything, as_json))


async def _list(settings: Settings, as_json: bool) -> None:
    from shared.client import Client
    from shared.client.views import dead_letters as letters

    async with Client(settings) as client:
        found = await letters.letters(client)
    if as_json:
        screen.document("dead", dead=[letter.card() for letter in found])
        return
    if not found:
        screen.talk("There are no dead letters.")
        return
    for card in (letter.card() for letter in found):
        age = screen.ago(time.time() - card["at_ms"] / 1000)
        screen.out(f"{card['key']}  {age} ago")
        screen.out(f"  {screen.fitted(card['reason'] or 'no reason is known', 2)}")
        if card["content"]:
            screen.out(f"  {screen.fitted(card['content'], 2)}")
    screen.talk("Once more: promptdock dead replay KEY. Away with it: promptdock dead drop KEY, or --all")


async def _drop(settings: Settings, name: str | None, everything: bool, as_json: bool) -> None:
    from shared.client import Client
    from shared.client.views import dead_letters as letters

    if (name is None) != everything:
        raise UsageError("which dead letters?", "", "name one, or say --all: promptdock dead drop --all")
    async with Client(settings) as client:
        await client.reach()
        count = await letters.drop(client, name)
    if as_json:
        screen.document("dead_dropped", dropped=count)
    else:
        screen.out(f"{count} dead letter{'' if count == 1 else 's'} dropped")


async def _show(settings: Settings, name: str, as_json: bool) -> None:
    from shared.client import Client
    from shared.client.views import dead_letters as letters

    async with Client(settings) as client:
        letter = await letters.find(client, name)
    card = letters.whole(letter)
    if as_json:
        screen.document("dead_letter", **card)
        return
    for field in ("key", "agent", "id", "session", "channel", "reason"):
        screen.out(f"{field:8} {card[field]}")
    screen.out(json.dumps(card["message"], indent=2, ensure_ascii=False))


async def _replay(settings: Settings, name: str, as_json: bool) -> None:
    from shared.client import Client
    from shared.client.views import dead_letters as letters

    async with Client(settings) as client:
        sent = await letters.replay(client, name)
    if as_json:
        screen.document("replay", id=sent.id, outcome=sent.outcome)
    else:
        screen.out(sent.id)
        screen.talk(f"{sent.outcome} under its new id")
