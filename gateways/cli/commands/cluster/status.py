"""`status`: the cluster at a glance."""

from __future__ import annotations

import time
from typing import Any

from gateways.cli import screen
from shared.client import Client
from shared.client.local import supervision
from shared.client.views import inbox
from shared.client.views import mcp as servers
from shared.client.views import status as look
from shared.errors import BusUnreachable
from shared.settings import Settings

_SILENT = 9.0  # seconds without a heartbeat after which two of them are missing
_NEWS = 86_400.0  # seconds in which a dead letter is mentioned by itself


async def status(settings: Settings, agent: str | None, as_json: bool, user: str = "") -> int:
    """0, or 1 if an agent was named and has no presence."""
    async with Client(settings) as client:
        try:
            state = await look.status(client)
            waits = len(await inbox.known(client, user)) if agent is None else 0
        except BusUnreachable as error:
            if found := supervision.running(settings.home):
                what = f"the cluster was started (process {found.pid}), and its Redis does not answer"
                fix = "see promptdock logs; end it with promptdock down"
                raise BusUnreachable(what, error.why, fix) from None
            raise
    cards = [card for card in state["agents"] if agent in (None, card["agent"])]
    if as_json:
        wrong = [{"name": one.name, "why": one.why, "do": one.fix} for one in settings.wrong]
        more = {"agents": cards, "waits_for_you": waits, "settings_wrong": wrong}
        screen.document("status", **state | more)
    elif agent is None:
        _whole(state)
        if waits:
            screen.talk(
                f"{waits} thing{'s' * (waits != 1)} wait{'s' * (waits == 1)} for you: promptdock inbox"
            )
    elif cards:
        _table(cards, state["queues"])
        _works([one for one in state["doing"] if one["agent"] == agent])
    if agent is None or cards:
        return 0
    if agent in state["unannounced"]:  # somebody is there: a program of one's own need not say so
        screen.talk(f"{agent} is served by a program that does not announce itself")
        return 0
    if agent in state["offline"]:
        fix = (
            f"promptdock up -d --with {agent}" if state["supervised"] else f"python -m agents --name {agent}"
        )
        screen.talk(f"promptdock: {agent} is not here\n  do:  start it with: {fix}")
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
    for provider in state["providers"] if not state["demo"] else ():
        screen.out(
            "  provider ", provider["told"] if provider["state"] == "ok" else screen.warning(provider["told"])
        )
    if state["web"]:
        screen.out(f"  web      {state['web']}")
    screen.out(f"  home     {state['home']}")
    screen.out()
    _table(state["agents"], state["queues"])
    _works(state["doing"])
    for name, why in state["failed"].items():
        screen.out(f"{name}  cannot start: {why}")
    for name in state["offline"]:
        if name in state["failed"]:
            continue
        told = "unannounced: a program listens on its channel" if name in state["unannounced"] else "offline"
        screen.out(f"{name}  ", screen.state(told), f", {state['queues'].get(name, 0)} waiting")
    passing = [name for name in state["offline"] if name not in (*state["expected"], *state["unannounced"])]
    if passing:
        screen.talk(f"does not come back by itself: {', '.join(passing)} (promptdock agents forget NAME)")
    for told in servers.lost(state["agents"]):
        screen.talk(f"{told} (promptdock mcp list)")
    if not state["supervised"] and state["left"]:
        screen.talk(f"nobody supervises what still runs here: {', '.join(state['left'])} (promptdock down)")
    since = time.time() - state["dead_newest_ms"] / 1000
    if state["dead"] and since < _NEWS:
        told = ", ".join(f"{name} {count}" for name, count in state["dead"].items())
        screen.talk(f"dead letters: {told}, the newest {screen.ago(since)} old (promptdock dead list)")
    if state["outbox"]:
        screen.talk(f"messages in the outbox that did not go out: {state['outbox']}")


def _table(cards: list[dict[str, Any]], queues: dict[str, int]) -> None:
    rows = [
        (
            card["agent"],
            screen.state(_state(card)),
            screen.ago(float(card.get("uptime") or 0)),
            f"{int(card['memory']) >> 20} MB" if card.get("memory") else "",
            queues.get(str(card["agent"]), 0),
            card.get("sandbox"),
            card.get("pid"),
            card.get("model") or "",
        )
        for card in cards
    ]
    screen.table(rows, ("agent", "state", "up", "memory", "queue", "sandbox", "pid", "model"))


def _state(card: dict[str, Any]) -> object:
    """What it says of itself, as long as its heart beats: every 4 s."""
    silent = int(card.get("age_ms") or 0) / 1000
    if silent > _SILENT:
        return f"silent for {screen.ago(silent)}"
    return look.state(card)


def _works(doing: list[dict[str, Any]]) -> None:
    """Who works on what, and what was done last; a table of its own, since titles need room."""
    if not doing:
        return
    screen.out()
    rows = [
        (one["agent"], screen.ago(one["seconds"]), one.get("task") or one.get("kind"), _about(one))
        for one in doing
    ]
    screen.table(rows, ("works", "since", "on", "what, and what was done last"))


def _about(one: dict[str, Any]) -> str:
    who = f"of {one['user']}" if one.get("user") and not one.get("title") else ""
    return " · ".join(part for part in (one.get("title") or who or one["turn"], one.get("act")) if part)
