"""`inbox`: all that waits for the person, each with the command that answers it."""

from __future__ import annotations

from gateways.cli import screen
from shared.client import Client
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
        for text in item.lines():
            screen.out(text)
