"""Looking at the cluster through Redis: who is here, what waits, what somebody is doing right now."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from shared import log
from shared.bus.keys import CHATTER
from shared.errors import PromptDockError
from shared.visitor import supervision
from shared.visitor.findings import Finding
from shared.visitor.visitor import Visitor


def release() -> str:
    """The version of this release."""
    try:
        return version("promptdock")
    except PackageNotFoundError:
        return "0.1.0"


async def status(visitor: Visitor) -> dict[str, Any]:
    """The cluster at a glance; `agents` are presence cards, `queues` counts what has not ended yet."""
    await visitor.reach()
    cards = sorted(
        await visitor.presence.here(), key=lambda card: (str(card.get("agent")), str(card["instance"]))
    )
    known = await visitor.presence.agents()
    queues = {name: await _size(visitor, name) for name in known}
    heard = {name: await visitor.bus.listeners(visitor.names.agent(name)) for name in known}
    return {
        "version": release(),
        "agents": cards,
        "offline": [name for name in known if not any(card["agent"] == name for card in cards)],
        # a program that serves an agent's channel without saying that it is here
        "unannounced": [
            name for name, ears in heard.items() if ears and not any(card["agent"] == name for card in cards)
        ],
        "queues": queues,
        "dead": {name: count for name in known if (count := await _length(visitor, name, "dead"))},
        "redis": await redis(visitor),
        "model": next((str(card.get("model", "")) for card in cards), ""),
        "demo": any(card.get("demo") for card in cards),
        "store": next((str(card.get("store", "")) for card in cards), ""),
        "home": str(visitor.settings.home),
        "supervised": supervision.running(visitor.settings.home) is not None,
        "left": supervision.left(visitor.settings.home),
        "outbox": len(list(visitor.outbox.folder.glob("*.json"))),
    }


def other_homes(cards: list[dict[str, Any]]) -> Finding | None:
    """Workers with SQLite files of two homes on one Redis: each task is in one file, and lost to the others."""
    homes = {str(card.get("home")) for card in cards if card.get("store") == "sqlite"}
    if len(homes) < 2:
        return None
    told = f"workers of {len(homes)} homes, each with a SQLite of its own, share this Redis: tasks will hang"
    return Finding("homes", "fail", told, "give each home its own PROMPTDOCK_NAMESPACE, or set SUPABASE_URL")


async def redis(visitor: Visitor) -> dict[str, Any]:
    """What the server says of itself; where it hides that, only the address."""
    facts = await info(visitor)
    server = "Valkey" if facts.get("server_name") == "valkey" or "valkey_version" in facts else "Redis"
    url = visitor.url
    return {
        "address": log.redact(url.split("://", 1)[-1].rpartition("@")[2]),
        "embedded": visitor.settings.redis_url is None,
        "server": server,
        "version": facts.get("valkey_version") or facts.get("redis_version", ""),
    }


async def info(visitor: Visitor) -> dict[str, str]:
    """INFO as pairs; {} where the server hides it."""
    try:
        text = (await visitor.bus.command("INFO")).decode("utf-8", "replace")
    except PromptDockError as error:
        if error.exit_code == 3:
            raise
        return {}
    return dict(part.split(":", 1) for part in text.split("\r\n") if ":" in part)


async def _size(visitor: Visitor, agent: str) -> int:
    return await _length(visitor, agent, "inbox")


async def _length(visitor: Visitor, agent: str, stream: str) -> int:
    return int(await visitor.bus.command("XLEN", f"{visitor.names.desk(agent)}{stream}"))


@dataclass(frozen=True)
class Pulse:
    """What is known of an agent that was asked: milliseconds since its heartbeat, and what it did last."""

    beat_ms: int | None
    doing: str


async def pulse(visitor: Visitor, agent: str, request_id: str) -> Pulse:
    """Look how an agent is and what it last did for a request."""
    cards = await visitor.presence.here(agent)
    stream = visitor.names.stream(f"{agent}:{request_id}"[:200])
    newest = await visitor.bus.command("XREVRANGE", stream, "+", "-", "COUNT", 1)
    doing = _doing(newest[0][1][1]) if newest else ""
    return Pulse(min((int(card["age_ms"]) for card in cards), default=None), doing)


def _doing(data: bytes) -> str:
    try:
        event = json.loads(data)
    except ValueError:
        return ""
    if not isinstance(event, dict):
        return ""
    if event.get("event") in ("tool_call", "tool_result"):
        arguments = event.get("arguments") or {}
        return " ".join([str(event.get("tool", "")), *(str(value) for value in arguments.values())])[:80]
    return {"thinking": "thinks", "chunk": "writes"}.get(str(event.get("event")), "")


async def serves(visitor: Visitor, agent: str = CHATTER) -> bool:
    """Whether anybody would take a message for this agent now."""
    return bool(await visitor.presence.here(agent)) or bool(
        await visitor.bus.listeners(visitor.names.agent(agent))
    )
