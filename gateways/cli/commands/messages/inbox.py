"""`inbox`: all that waits for the person, each with the command that answers it."""

from __future__ import annotations

from gateways.cli import screen
from shared.client import Client
from shared.client.local.typed import runnable
from shared.client.text.safe import line
from shared.client.views import inbox as waiting
from shared.settings import Settings


async def show(settings: Settings, user: str, as_json: bool) -> None:
    """The list; works with the cluster down."""
    async with Client(settings) as client:
        items = await waiting.inbox(client, user)
    if as_json:
        screen.document("inbox", items=[item.card() for item in items])
        return
    if not items:
        screen.out("Nothing waits for you.")
    for item in items:
        age = f"{screen.since(item.since)} old" if item.since else ""
        place = ", ".join(
            part for part in (age, item.session, item.project and f"project {item.project}") if part
        )
        screen.out(f"{item.kind:10}  {line(item.what, 300)}" + (f"  ({place})" if place else ""))
        for number, option in enumerate(item.options, 1):
            screen.out(f"{'':12}{number}. {line(option, 200)}")
        screen.out(f"{'':12}{runnable(item.answer)}")
