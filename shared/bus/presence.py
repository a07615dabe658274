"""Presence: who is here, doing what, and since when. It lives 15 s after the last heartbeat."""

from __future__ import annotations

import json
from typing import Any

from shared.bus.base import Bus
from shared.bus.keys import STATUS, Names
from shared.bus.messages import now

LIFE_MS = 15_000


class Presence:
    """All workers' heartbeats: a hash of `<agent>/<instance>`, and the channel `agent:status`."""

    def __init__(self, bus: Bus, names: Names) -> None:
        self._bus, self._names = bus, names

    async def _now(self) -> int:
        seconds, micros = await self._bus.command("TIME", key=self._names.presence)
        return int(seconds) * 1000 + int(micros) // 1000

    async def beat(self, agent: str, instance: str, state: dict[str, Any]) -> None:
        """Say that we are here; the dead are swept."""
        seen = await self._now()
        card = {"agent": agent, "instance": instance, **state, "timestamp": now(), "seen": seen}
        text = json.dumps(card, ensure_ascii=False)
        await self._bus.command("HSET", self._names.presence, f"{agent}/{instance}", text)
        await self._bus.command("SADD", self._names.agents, agent)
        await self._bus.publish(self._names.channel(STATUS), text)
        for field, other in (await self._all()).items():
            if seen - int(other.get("seen", 0)) > 4 * LIFE_MS:
                await self._bus.command("HDEL", self._names.presence, field)

    async def leave(self, agent: str, instance: str) -> None:
        """Say that we go."""
        await self._bus.command("HDEL", self._names.presence, f"{agent}/{instance}")
        card = {"agent": agent, "instance": instance, "status": "offline", "timestamp": now()}
        await self._bus.publish(self._names.channel(STATUS), json.dumps(card))

    async def here(self, agent: str | None = None) -> list[dict[str, Any]]:
        """The cards of those who are here, each with `age_ms` since its heartbeat."""
        seen = await self._now()
        cards = [card | {"age_ms": seen - int(card.get("seen", 0))} for card in (await self._all()).values()]
        return [c for c in cards if c["age_ms"] <= LIFE_MS and (agent is None or c.get("agent") == agent)]

    async def agents(self) -> list[str]:
        """Every agent that has ever been here, by name."""
        return sorted(name.decode() for name in await self._bus.command("SMEMBERS", self._names.agents))

    async def _all(self) -> dict[str, dict[str, Any]]:
        flat = await self._bus.command("HGETALL", self._names.presence)
        pairs = iter(flat)
        found = {}
        for field, value in zip(pairs, pairs, strict=True):
            try:
                card = json.loads(value)
            except ValueError:
                continue
            if isinstance(card, dict):
                found[field.decode()] = card
        return found
