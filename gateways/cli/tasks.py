"""`tasks`: what was assigned and what came of it."""

from __future__ import annotations

from typing import Any

from gateways.cli import screen
from shared.settings import Settings
from shared.visitor import Visitor
from shared.visitor import tasks as records


async def show(settings: Settings, everything: bool, as_json: bool) -> None:
    """The list."""
    async with Visitor(settings) as visitor:
        rows = await records.tasks(visitor, everything=everything)
    if as_json:
        screen.document("tasks", tasks=rows)
        return
    heads = ("id", "status", "assignee", "age", "title")
    screen.table(
        [(r["id"], records.state(r), r["assignee"], screen.since(r["created_at"]), r["title"]) for r in rows],
        heads,
    )


async def one(settings: Settings, name: str, as_json: bool) -> None:
    """One task, whole."""
    async with Visitor(settings) as visitor:
        card = await records.task(visitor, name)
    if as_json:
        screen.document("task", **card)
        return
    screen.out(f"{card['id']}  {records.state(card)}  {card['assignee'] or ''}\n{card['title']}")
    if card["made"]:
        screen.out(card["made"])
    if card["error"]:
        screen.out(f"error: {card['error']}")
    for event in card["history"]:
        screen.out(f"  {event['at'][:19]}  {event['event']:20} {event['to']:12} {event['actor']}")
    for result in card["results"]:
        _receipt(result)


def _receipt(result: dict[str, Any]) -> None:
    screen.out(f"\n{result['agent']}: {result['verified']}, {result['tokens']} tokens, ${result['cost']:.4f}")
    if result["branch"]:
        screen.out(f"  branch   {result['branch']}")
    for commit in result["commits"]:
        screen.out(f"  commit   {commit}")
    for command in result["commands"]:
        who = "check  " if command.get("by") == "harness" else "command"
        screen.out(f"  {who}  exit {command['exit_code']}  {command['command']}")
    for clash in result["clashes"]:
        screen.out(f"  clashes with {clash['branch']}: {', '.join(clash['files'][:10])}")
    if result["diff_stat"]:
        screen.out(result["diff_stat"].rstrip())
    if result["summary"]:
        screen.out(result["summary"])


async def diff(settings: Settings, name: str) -> None:
    """What it changed."""
    async with Visitor(settings) as visitor:
        screen.out(await records.diff(visitor, name))
