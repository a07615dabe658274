"""Looking at the cluster through Redis: who is here, what waits, what somebody is doing right now."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shared import log
from shared.bus import embedded
from shared.bus.activity import Activity, act, stream_of
from shared.bus.activity import doing as activities
from shared.bus.keys import CHATTER
from shared.bus.presence import instance_of
from shared.client.client import Client
from shared.client.findings import Finding
from shared.client.local import supervision, web_address
from shared.client.local.release import release as release
from shared.client.text.safe import line
from shared.client.text.times import ago
from shared.client.types import Sent
from shared.client.views import models
from shared.errors import PromptDockError
from shared.store.records import Project

_REACH = 3.0  # seconds that asking the cluster may take
_RECENT = 5  # events among which the last act is found
USUAL_PORT = embedded.PORT


def usual_port_taken(redis: dict[str, Any]) -> bool:
    """Whether the embedded server is elsewhere because another program has its usual port."""
    elsewhere = redis["embedded"] and not redis["address"].endswith(f":{USUAL_PORT}")
    return elsewhere and embedded.free_port(USUAL_PORT) != USUAL_PORT


async def status(client: Client) -> dict[str, Any]:
    """The cluster at a glance; `agents` are presence cards, `queues` counts what has not ended yet."""
    await client.reach()
    cards = sorted(
        await client.presence.here(), key=lambda card: (str(card.get("agent")), str(card["instance"]))
    )
    known = await client.presence.agents()
    queues = {name: await _size(client, name) for name in known}
    heard = {name: await client.bus.listeners(client.names.agent(name)) for name in known}
    return {
        "version": release(),
        "agents": cards,
        "offline": [name for name in known if not any(card["agent"] == name for card in cards)],
        # a program that serves an agent's channel without saying that it is here
        "unannounced": [
            name for name, ears in heard.items() if ears and not any(card["agent"] == name for card in cards)
        ],
        "doing": [working.row() for working in await doing(client, cards)],
        "queues": queues,
        "dead": {name: count for name in known if (count := await _length(client, name, "dead"))},
        "dead_newest_ms": max([await _newest_dead(client, name) for name in known], default=0),
        "redis": await redis(client),
        "model": _speaks(cards, "model"),
        "provider": _speaks(cards, "provider"),
        "demo": any(card.get("demo") for card in cards),
        "providers": [models.card(one) for one in await models.known(client)],
        "store": next((str(card.get("store", "")) for card in cards), ""),
        "home": str(client.settings.home),
        "web": web_address.found(client.settings.home),
        "expected": supervision.expected(client.settings.home),
        "supervised": (ours := supervision.running(client.settings.home)) is not None,
        "failed": dict(ours.failed) if ours else {},
        "left": supervision.left(client.settings.home),
        "outbox": len(list(client.spool.folder.glob("*.json"))),
    }


def speaks(cards: list[dict[str, Any]]) -> str:
    """The name of the model that people speak with; DEMO where it is the scripted one."""
    return "DEMO" if any(card.get("demo") for card in cards) else _speaks(cards, "model")


def _speaks(cards: list[dict[str, Any]], field: str) -> str:
    """Of Chatter, with whom people speak, else of whoever thinks with a model at all."""
    first = sorted((card for card in cards if card.get(field)), key=lambda card: card["agent"] != CHATTER)
    return str(first[0][field]) if first else ""


def other_homes(cards: list[dict[str, Any]]) -> Finding | None:
    """Workers with SQLite files of two homes on one Redis: each task is in one file, and lost to the others."""
    homes = {str(card.get("home")) for card in cards if card.get("store") == "sqlite"}
    if len(homes) < 2:
        return None
    told = f"workers of {len(homes)} homes, each with a SQLite of its own, share this Redis: tasks will hang"
    return Finding("homes", "fail", told, "give each home its own PROMPTDOCK_NAMESPACE, or set SUPABASE_URL")


async def redis(client: Client) -> dict[str, Any]:
    """What the server says of itself; where it hides that, only the address."""
    facts = await info(client)
    server = "Valkey" if facts.get("server_name") == "valkey" or "valkey_version" in facts else "Redis"
    url = client.url
    return {
        "address": log.redact(url.split("://", 1)[-1].rpartition("@")[2]),
        "embedded": client.settings.redis_url is None,
        "server": server,
        "version": facts.get("valkey_version") or facts.get("redis_version", ""),
    }


async def info(client: Client) -> dict[str, str]:
    """INFO as pairs; {} where the server hides it."""
    try:
        text = (await client.bus.command("INFO")).decode("utf-8", "replace")
    except PromptDockError as error:
        if error.exit_code == 3:
            raise
        return {}
    return dict(part.split(":", 1) for part in text.split("\r\n") if ":" in part)


async def _size(client: Client, agent: str) -> int:
    return await _length(client, agent, "inbox")


async def _length(client: Client, agent: str, stream: str) -> int:
    return int(await client.bus.command("XLEN", client.names.keys(agent).named(stream)))


async def _newest_dead(client: Client, agent: str) -> int:
    """When an agent's newest dead letter came, in milliseconds since 1970; 0 where it has none."""
    stream = client.names.keys(agent).dead_letters
    found = await client.bus.command("XREVRANGE", stream, "+", "-", "COUNT", 1)
    return int(found[0][0].partition(b"-")[0]) if found else 0


@dataclass(frozen=True)
class Pulse:
    """What is known of an agent that was asked: milliseconds since its heartbeat, and what it did last."""

    beat_ms: int | None
    doing: str


async def pulse(client: Client, agent: str, request_id: str) -> Pulse:
    """Look how an agent is and what it last did for a request."""
    cards = await client.presence.here(agent)
    doing = await _last(client, stream_of(agent, request_id))
    return Pulse(min((int(card["age_ms"]) for card in cards), default=None), doing)


@dataclass(frozen=True)
class Working:
    """One turn of an agent that is here, and for how many seconds it runs."""

    agent: str
    activity: Activity
    seconds: float
    waits: float = 0.0  # seconds for which the model's provider has made it wait

    def told(self, width: int = 200) -> str:
        """As one line, with what may be cut at its end: how long, who, on what, what was done last."""
        act = f" · {self.activity.act}" if self.activity.act else ""
        return line(f"{ago(self.seconds)} {self.agent}: {self.activity.about}{act}", width)

    def row(self) -> dict[str, Any]:
        """For programs."""
        waits = {"waits_seconds": round(self.waits, 1)} if self.activity.waits else {}
        return {"agent": self.agent, **self.activity.card(), "seconds": round(self.seconds, 1), **waits}


async def doing(client: Client, cards: Sequence[dict[str, Any]] | None = None) -> list[Working]:
    """Who works on what now, each with what it did last; those that work the longest come first."""
    cards = await client.presence.here() if cards is None else cards
    found = []
    for card in cards:
        now = int(card.get("seen") or 0) + int(card.get("age_ms") or 0)
        for activity in activities(card):
            if activity.events and (last := await _last(client, activity.events, activity.since)):
                activity.act = last
            waits = max(0, now - activity.waits_since) / 1000 if activity.waits else 0.0
            found.append(Working(str(card["agent"]), activity, max(0, now - activity.since) / 1000, waits))
    return sorted(found, key=lambda working: -working.seconds)


def state(card: dict[str, Any]) -> str:
    """What an agent says that it does; for one that waits for the model's provider, for how long it does."""
    told = str(card.get("status") or "")
    since = min((one.waits_since for one in activities(card) if one.waits_since), default=0)
    now = int(card.get("seen") or 0) + int(card.get("age_ms") or 0)
    return f"{told}, {ago(max(0, now - since) / 1000)}" if told == "waiting" and since else told


async def _last(client: Client, session: str, since: int = 0) -> str:
    """What was done last; `since` is when the turn began, in the server's milliseconds, as ids of events begin."""
    newest = await client.bus.command(
        "XREVRANGE", client.names.stream(session), "+", str(since), "COUNT", _RECENT
    )
    return next((told for _, fields in newest if (told := _act(fields[1]))), "")


def _act(data: bytes) -> str:
    try:
        event = json.loads(data)
    except ValueError:
        return ""
    if not isinstance(event, dict) or event.get("event") == "tool_result":
        return ""
    return act(str(event.get("event")), event)


async def processes(client: Client, pids: Iterable[int]) -> set[int]:
    """Those of these processes of this machine that are here as workers."""
    instances = [str(card.get("instance")) for card in await client.presence.here()]
    return {pid for pid in pids if any(one.startswith(instance_of(pid)) for one in instances)}


async def serves(client: Client, agent: str = CHATTER) -> bool:
    """Whether anybody would take a message for this agent now."""
    return bool(await client.presence.here(agent)) or bool(
        await client.bus.listeners(client.names.agent(agent))
    )


def absence(client: Client) -> str:
    """Why Redis does not answer: where it is that of this home, and nobody keeps it there, with what to do."""
    embedded_here = client.settings.redis_url is None
    if embedded_here and not supervision.is_up(client.settings.home):
        return "the cluster is down (start it: promptdock up)"
    return "Redis is away"


async def nobody(client: Client) -> str:
    """Why nothing is worked on now; "" where workers are here."""
    try:
        async with asyncio.timeout(_REACH):
            await client.reach()
            return "" if await client.presence.here() else "no worker is here (see promptdock status)"
    except (PromptDockError, TimeoutError):
        return absence(client)


async def unread(client: Client, sent: Sent) -> str:
    """Why nobody reads a message to Chatter that was sent just now; "" where somebody does."""
    if sent.outcome == "kept":
        return f"{absence(client)}: the message is kept, and goes out when it is back"
    if not await serves(client):
        return "nobody is here as Chatter: the message waits until somebody is"
    return ""


async def unreadable(client: Client) -> str:
    """Why the Store cannot be read; "" where it can."""
    try:
        async with asyncio.timeout(_REACH):
            await (await client.store()).select(Project, limit=1)
    except PromptDockError as error:
        return error.told()
    except TimeoutError:
        return "the Store does not answer"
    return ""
