"""`tasks`: what was assigned and what came of it."""

from __future__ import annotations

from typing import Any

from gateways.cli import diffs, screen
from shared.client import Client
from shared.client.views import tasks as records
from shared.client.views.tasks import Card
from shared.settings import Settings


async def show(settings: Settings, wanted: records.Filter, as_json: bool) -> None:
    """The list."""
    async with Client(settings) as client:
        rows = await records.tasks(client, wanted)
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


async def one(settings: Settings, name: str, as_json: bool) -> None:
    """One task, whole."""
    async with Client(settings) as client:
        card = await records.task(client, name)
    if as_json:
        screen.document("task", **card)
        return
    with screen.paged():
        _whole(card)


def _whole(card: records.Card) -> None:
    state = screen.state(records.state(card))
    made = screen.since(card["created_at"])
    screen.out(screen.strong(card["id"]), "  ", state, f"  {card['assignee'] or ''}  made {made} ago")
    screen.out(card["title"])
    if card["made"]:
        screen.out(card["made"])
    if card["error"]:
        screen.out(f"error: {card['error']}")
    if card["question"]:
        question(card["id"], card["question"])
    for event in card["history"]:
        at = screen.faint(screen.moment(event["at"], seconds=True))
        screen.out(
            "  ", at, f"  {event['event']:20} ", screen.state(f"{event['to']:12}"), f" {event['actor']}"
        )
    for result in card["results"]:
        _receipt(result)


def question(name: str, asked: dict[str, Any]) -> None:
    """What a task asks, and how it is answered."""
    screen.out(f"it asks: {asked['asked']}")
    if asked["context"]:
        screen.out(f"  {asked['context']}")
    for number, option in enumerate(asked["options"], 1):
        screen.out(f"  {number}. {option}")
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
    screen.out(
        f"\n{result['agent']}: ", screen.state(result["verified"]),
        f", {result['tokens']} tokens, ${result['cost']:.4f}",
    )  # fmt: skip
    if result["branch"]:
        screen.out(f"  branch   {result['branch']}")
    for commit in result["commits"]:
        screen.out(f"  commit   {commit}")
    for command in result["commands"]:
        who = "check  " if command.get("by") == "harness" else "command"
        code = command["exit_code"]
        screen.out(
            f"  {who}  ", screen.bad(f"exit {code}") if code else f"exit {code}", f"  {command['command']}"
        )
    for clash in result["clashes"]:
        screen.out(f"  clashes with {clash['branch']}: {', '.join(clash['files'][:10])}")
    if result["diff_stat"]:
        screen.out(result["diff_stat"].rstrip())
    if result["summary"]:
        screen.out(result["summary"])


async def diff(settings: Settings, name: str) -> None:
    """What it changed."""
    async with Client(settings) as client:
        text = await records.diff(client, name)
    with screen.paged():
        diffs.show(text)
