"""`pending` and `dead`: what waits, and what could not be answered."""

from __future__ import annotations

import json
import time

from gateways.cli import screen
from shared.client import Client
from shared.client.views import dead_letters as letters
from shared.client.views import pending as waiting
from shared.errors import UsageError
from shared.settings import Settings


async def pending(settings: Settings, as_json: bool) -> None:
    """Accepted messages that have not ended."""
    async with Client(settings) as visitor:
        rows = await waiting.pending(visitor)
    if as_json:
        screen.document("pending", pending=rows)
        return
    now = time.time()
    heads = ("agent", "state", "age", "session", "id", "waits for", "content")
    told = [
        (
            r["agent"],
            r["state"],
            screen.ago(now - r["accepted_ms"] / 1000),
            r["session"],
            r["id"],
            r["waits_for"],
            r["content"],
        )
        for r in rows
    ]
    screen.table(told, heads, "Nothing waits: every accepted message has ended.")


async def show(settings: Settings, as_json: bool) -> None:
    """The dead letters."""
    async with Client(settings) as visitor:
        found = await letters.letters(visitor)
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


async def drop(settings: Settings, name: str | None, everything: bool, as_json: bool) -> None:
    """Away with one, or with all."""
    if (name is None) != everything:
        raise UsageError("which dead letters?", "", "name one, or say --all: promptdock dead drop --all")
    async with Client(settings) as visitor:
        await visitor.reach()
        count = await letters.drop(visitor, name)
    if as_json:
        screen.document("dead_dropped", dropped=count)
    else:
        screen.out(f"{count} dead letter{'' if count == 1 else 's'} dropped")


async def one(settings: Settings, name: str, as_json: bool) -> None:
    """One of them, whole."""
    async with Client(settings) as visitor:
        letter = await letters.find(visitor, name)
    card = letters.whole(letter)
    if as_json:
        screen.document("dead_letter", **card)
        return
    for field in ("key", "agent", "id", "session", "channel", "reason"):
        screen.out(f"{field:8} {card[field]}")
    screen.out(json.dumps(card["message"], indent=2, ensure_ascii=False))


async def replay(settings: Settings, name: str, as_json: bool) -> None:
    """Once more."""
    async with Client(settings) as visitor:
        sent = await letters.replay(visitor, name)
    if as_json:
        screen.document("replay", id=sent.id, outcome=sent.outcome)
    else:
        screen.out(sent.id)
        screen.talk(f"{sent.outcome} under its new id")
