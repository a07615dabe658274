"""`thread`: the threads of channels, and ending one."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from gateways.cli import screen
from gateways.cli.options import Json, User, group
from gateways.cli.run import run
from shared.client import Client
from shared.client.text.safe import line
from shared.client.views.conversation import threads
from shared.settings import Settings

app = group()
Place = Annotated[
    str, typer.Option("--channel", metavar="SURFACE:ID", help="Only of this channel; of all by default.")
]


@app.command("list")
def list_(user: User, channel: Place = "", as_json: Json = False) -> NoReturn:
    """The threads that have a number now: of yours, and those that are shared."""
    run(lambda settings: _list(settings, user, channel, as_json))


@app.command("kill")
def kill(
    number: Annotated[int, typer.Argument(min=1, metavar="NUMBER", help="Its number in the channel.")],
    user: User,
    channel: Place = "",
    as_json: Json = False,
) -> NoReturn:
    """End what runs in a thread, and take back what waits there."""
    run(lambda settings: _kill(settings, user, number, channel, as_json))


async def _list(settings: Settings, user: str, channel: str, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await threads.listed(client, user, channel)
    if as_json:
        screen.document("threads", threads=found)
        return
    rows = [
        (one["channel"], f"#{one['number']}", one["state"], line(one["title"], 60), screen.moment(one["at"]))
        for one in found
    ]
    empty = "There is no thread now: promptdock ask --channel SURFACE:ID --new-thread begins one."
    screen.table(rows, ("channel", "thread", "state", "about", "last word"), empty)


async def _kill(settings: Settings, user: str, number: int, channel: str, as_json: bool) -> None:
    async with Client(settings) as client:
        told = await threads.kill(client, user, number, channel)
    if as_json:
        screen.document("thread_killed", number=number, told=told)
    else:
        screen.out(told)
