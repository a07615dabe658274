"""Presence: who is here, doing what, and since when. It lives 15 s after the last heartbeat."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from typing import Any

from shared.bus.base import Bus
from shared.bus.keys import STATUS, Names, is_agent
from shared.bus.messages import now
from shared.bus.signing import Signer

LIFE_MS = 15_000
PASSING = "bridge"  # the kind of an agent that lives as long as somebody's command
_STREAMS = ("inbox", "archive", "out", "dead")


def instance_of(pid: int) -> str:
    """How the instances of a process of this machine begin: others may have processes of that id elsewhere."""
    return f"{socket.gethostname()[:20]}-{pid}-"


class Presence:
    """All workers' heartbeats: a hash of `<agent>/<instance>`, and the channel `agent:status`.

    With a `signer` what is published there is signed; the hash is the cluster's own anyway.
    """

    def __init__(self, bus: Bus, names: Names, signer: Signer | None = None) -> None:
        self._bus, self._names, self._signer = bus, names, signer
        self._roster: dict[str, str] | None = None
        self._heard: dict[str, tuple[float, dict[str, Any]]] = {}  # of whom, when by our clock, and what

    async def _now(self) -> int:
        seconds, micros = await self._bus.command("TIME", key=self._names.presence)
        return int(seconds) * 1000 + int(micros) // 1000

    async def beat(self, agent: str, instance: str, state: dict[str, Any]) -> None:
        """Say that we are here; the dead are swept."""
        seen = await self._now()
        card = {"agent": agent, "instance": instance, **state, "timestamp": now(), "seen": seen}
        text = json.dumps(card, ensure_ascii=False)
        command, names = self._bus.command, self._names
        _, _, _, _, cards, known = await asyncio.gather(  # they leave in this order, and in one write
            command("HSET", names.presence, f"{agent}/{instance}", text),
            command("SADD", names.agents, agent),
            self._publish(card),
            self.announce(str(state.get("cluster", "")), asks=True),
            self._all(),
            self.agents(),
        )
        for field, other in cards.items():
            if seen - _seen(other) > 4 * LIFE_MS:
                await self._bus.command("HDEL", self._names.presence, field)
                if other.get("kind") == PASSING and await self.retire(str(other["agent"])):
                    known = [name for name in known if name != other["agent"]]
        self._roster = _roster(known, _alive(cards, seen))
        at = time.monotonic()
        self._heard = {field: (at - (seen - _seen(card)) / 1000, card) for field, card in cards.items()}

    async def _publish(self, card: dict[str, Any]) -> None:
        channel = self._names.channel(STATUS)
        card = {"id": f"{card['instance']}.{time.time_ns()}", **card}
        more = {"sig": self._signer.sign(channel, card)} if self._signer else {}
        await self._bus.publish(channel, json.dumps(card | more, ensure_ascii=False))

    async def announce(self, cluster: str, asks: bool = False) -> None:
        """Say to all clusters on this server which one is here; who asks is answered."""
        await self._bus.publish(self._names.clusters, json.dumps({"cluster": cluster, "asks": asks}))

    async def leave(self, agent: str, instance: str) -> None:
        """Say that we go."""
        await self._bus.command("HDEL", self._names.presence, f"{agent}/{instance}")
        card = {"agent": agent, "instance": instance, "status": "offline", "timestamp": now()}
        await self._publish(card)

    async def left(self, agent: str) -> dict[str, int]:
        """What lies in an agent's queue: by stream, how many entries, without the empty ones."""
        sizes = {
            name: int(await self._bus.command("XLEN", self._names.keys(agent).named(name)))
            for name in _STREAMS
        }
        return {name: size for name, size in sizes.items() if size}

    async def retire(self, agent: str) -> bool:
        """Take an agent off the roster, unless it is here or something lies in its queue; whether it is off."""
        if await self.here(agent) or await self.left(agent):
            return False
        await self.forget(agent)
        return True

    async def forget(self, agent: str) -> None:
        """Take an agent off the roster; with its next heartbeat it is on it again."""
        await self._bus.command("SREM", self._names.agents, agent)
        if self._roster is not None:
            self._roster.pop(agent, None)

    async def here(self, agent: str | None = None) -> list[dict[str, Any]]:
        """The cards of those who are here, each with `age_ms` since its heartbeat."""
        seen = await self._now()
        cards = _alive(await self._all(), seen)
        return [card for card in cards if agent is None or card.get("agent") == agent]

    async def roster(self) -> dict[str, str]:
        """Every agent that is or was here, with what it says it is for.

        Who beats has it at hand: as of the last beat, and of the heartbeats that were `met` since.
        """
        return (
            dict(self._roster)
            if self._roster is not None
            else _roster(await self.agents(), await self.here())
        )

    def at_hand(self) -> list[dict[str, Any]]:
        """The cards of those who are here as heartbeats told them, without asking; none for who does not beat."""
        alive = time.monotonic() - LIFE_MS / 1000
        return [card for at, card in self._heard.values() if at >= alive]

    def met(self, card: dict[str, Any]) -> None:
        """A heartbeat of the cluster came."""
        field = f"{card.get('agent')}/{card.get('instance')}"
        if card.get("status") == "offline":
            self._heard.pop(field, None)
        elif self._roster is not None and is_agent(str(card.get("agent"))):
            self._heard[field] = (time.monotonic(), card)
        if self._roster is not None and isinstance(agent := card.get("agent"), str) and is_agent(agent):
            self._roster[agent] = str(card.get("about") or "")

    async def agents(self) -> list[str]:
        """Every agent that has ever been here, by name."""
        known = await self._bus.command("SMEMBERS", self._names.agents)
        return sorted(name for one in known if is_agent(name := one.decode("utf-8", "replace")))

    async def _all(self) -> dict[str, dict[str, Any]]:
        flat = await self._bus.command("HGETALL", self._names.presence)
        pairs = iter(flat)
        cards = {}
        for field, value in zip(pairs, pairs, strict=True):
            try:
                card = json.loads(value)
            except ValueError:
                continue
            if isinstance(card, dict) and is_agent(str(card.get("agent"))):
                cards[field.decode("utf-8", "replace")] = card
        return cards


def _roster(agents: list[str], cards: list[dict[str, Any]]) -> dict[str, str]:
    here = {str(card.get("agent")): str(card.get("about", "")) for card in cards}
    return dict.fromkeys(agents, "") | {name: about for name, about in here.items() if is_agent(name)}


def _seen(card: dict[str, Any]) -> int:
    seen = card.get("seen")
    return seen if isinstance(seen, int) else 0


def _alive(cards: dict[str, dict[str, Any]], now_ms: int) -> list[dict[str, Any]]:
    aged = [card | {"age_ms": now_ms - _seen(card)} for card in cards.values()]
    return [card for card in aged if card["age_ms"] <= LIFE_MS]
