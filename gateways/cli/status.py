"""`status`: the cluster at a glance."""

from __future__ import annotations

from typing import Any

from gateways.cli import screen
from shared.errors import BusUnreachable
from shared.settings import Settings
from shared.visitor import Visitor, look, supervision


async def status(settings: Settings, agent: str | None, as_json: bool) -> int:
    """0, or 1 if an agent was named and has no presence."""
    async with Visitor(settings) as visitor:
        try:
            state = await look.status(visitor)
        except BusUnreachable as error:
            if found := supervision.running(settings.home):
                what = f"the cluster was started (process {found.pid}), and its Redis does not answer"
                fix = "see promptdock logs; end it with promptdock down"
                raise BusUnreachable(what, error.why, fix) from None
            raise
    cards = [card for card in state["agents"] if agent in (None, card["agent"])]
    if as_json:
        screen.document("status", **state | {"agents": cards})
    elif agent is None:
        _whole(state)
    elif cards:
        _table(cards, state["queues"])
    if agent is None or cards:
        return 0
    if agent in state["unannounced"]:
        screen.talk(f"promptdock: {agent} is served by a program that does not announce itself")
    elif agent in state["offline"]:
        screen.talk(f"promptdock: {agent} is not here\n  do:  start it with: python -m agents --name {agent}")
    else:
        known = sorted({str(card["agent"]) for card in state["agents"]} | set(state["offline"]))
        screen.talk(f"promptdock: there is no agent {agent}\n  do:  name one of: {', '.join(known)}")
    return 1


def _whole(state: dict[str, Any]) -> None:
    redis = state["redis"]
    kind = "embedded " if redis["embedded"] else ""
    model = "DEMO (scripted, no network, no cost)" if state["demo"] else state["model"] or "unknown"
    screen.out(f"PromptDock {state['version']}")
    screen.out(f"  redis    {kind}{redis['server']} {redis['version']} on {redis['address']}")
    screen.out(f"  store    {state['store'] or 'unknown'}")
    screen.out(f"  model    {model}")
    screen.out(f"  home     {state['home']}")
    screen.out()
    _table(state["agents"], state["queues"])
    for name in state["offline"]:
        told = "unannounced: a program listens on its channel" if name in state["unannounced"] else "offline"
        screen.out(f"{name}  {told}, {state['queues'].get(name, 0)} waiting")
    if not state["supervised"] and state["left"]:
        screen.talk(f"nobody supervises what still runs here: {', '.join(state['left'])} (promptdock down)")
    if state["dead"]:
        told = ", ".join(f"{name} {count}" for name, count in state["dead"].items())
        screen.talk(f"dead letters: {told} (promptdock dead list)")
    if state["outbox"]:
        screen.talk(f"messages in the outbox that did not go out: {state['outbox']}")


def _table(cards: list[dict[str, Any]], queues: dict[str, int]) -> None:
    rows = [
        (
            card["agent"],
            card.get("status"),
            screen.ago(float(card.get("uptime") or 0)),
            queues.get(str(card["agent"]), 0),
            card.get("sandbox"),
            card.get("pid"),
            card.get("current") or "",
        )
        for card in cards
    ]
    screen.table(rows, ("agent", "state", "up", "queue", "sandbox", "pid", "works on"))
