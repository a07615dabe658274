"""`tasks`: what was assigned and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateways.cli import diffs, screen
from shared.client import Client
from shared.client.types import Card
from shared.client.views import status
from shared.client.views.tasks import tasks as records
from shared.settings import Settings

_BEGUN = ("ASSIGNED", "IN_PROGRESS")
_STYLES = {"state": screen.state, "moment": screen.faint, "failed": screen.bad}


async def show(settings: Settings, wanted: records.Filter, as_json: bool) -> None:
    """The list."""
    async with Client(settings) as client:
        rows = await records.tasks(client, wanted)
        nobody = "" if as_json else await _nobody(client, rows)
    if as_json:
        screen.document("tasks", tasks=rows)
        return
    heads = ("id", "status", "assignee", "age", "title")
    cells = [
        (r["id"], screen.state(records.state(r)), r["assignee"], screen.since(r["created_at"]), r["title"])
        for r in rows
    ]
    any_of = wanted == records.Filter(limit=wanted.limit, everything=wanted.everything)
    screen.table(cells, heads, "There are no tasks yet." if any_of else "No task is like that.")
    if nobody:
        screen.talk(nobody)
    _resting(rows)


async def _nobody(client: Client, cards: Sequence[Card]) -> str:
    """That what is in progress by its state is not worked on, where that is so."""
    begun = any(card["status"] in _BEGUN for card in cards)
    why = await status.nobody(client) if begun else ""
    return f"nothing of this is worked on now: {why}" if why else ""


def _resting(cards: list[Card]) -> None:
    """Why some do not begin, and what lets them."""
    found = {card["project"]: card["project_status"] for card in cards if records.is_resting(card)}
    for project, how in sorted(found.items()):
        screen.talk(
            f"{project} is {how.lower()}, and nothing of it begins; go on: promptdock project resume {project}"
        )


async def one(settings: Settings, name: str, as_json: bool) -> None:
    """One task, whole."""
    async with Client(settings) as client:
        card = await records.task(client, name)
        nobody = "" if as_json else await _nobody(client, [card])
    if as_json:
        screen.document("task", **card)
        return
    with screen.paged():
        _whole(card)
        if nobody:
            screen.talk(nobody)


def _whole(card: Card) -> None:
    state = screen.state(records.state(card))
    made = screen.since(card["created_at"])
    screen.out(screen.strong(card["id"]), "  ", state, f"  {card['assignee'] or ''}  made {made} ago")
    screen.out(card["title"])
    if card["made"]:
        screen.out(card["made"])
    _resting([card])
    if card["error"]:
        screen.out(f"error: {card['error']}")
    if card["question"]:
        question(card["id"], card["question"])
    for line in records.history(card):
        _out(line)
    for result in card["results"]:
        _receipt(result)


def question(name: str, asked: dict[str, Any]) -> None:
    """What a task asks, and how it is answered."""
    for text in records.question(asked):
        screen.out(text)
    how = "NUMBER, or in your words" if asked["options"] else '"…"'
    screen.talk(f"… answer it with: promptdock tasks answer {name} {how}")


def ended(card: Card) -> None:
    """How a task came out, and what its last attempt did."""
    screen.out(f"{card['id']}  {records.state(card)}")
    if card["error"]:
        screen.out(f"error: {card['error']}")
    if card["results"]:
        _receipt(card["results"][-1])


def _receipt(result: dict[str, Any]) -> None:
    for line in records.receipt(result):
        _out(line)


def _out(line: records.StyledLine) -> None:
    screen.out(*(_STYLES[what](text) if what else text for text, what in line))


async def diff(settings: Settings, name: str) -> None:
    """What it changed."""
    async with Client(settings) as client:
        text = await records.diff(client, name)
    with screen.paged():
        diffs.show(text)
