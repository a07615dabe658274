"""Presence: who is here, doing what, and since when. It lives 15 s after the last heartbeat."""

from __future__ import annotations

import json
from typing import Any

from shared.bus.base import Bus
from shared.bus.keys import STATUS, Names, is_agent
from shared.bus.messages import now

LIFE_MS = 15_000


class Presence:
    """All workers' heartbeats: a hash of `<agent>/<instance>`, and the channel `agent:status`."""

    def __init__(self, bus: Bus, names: Names) -> None:
        self._bus, self._names = bus, names
        self._roster: dict[str, str] | None = None

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
        cards = await self._all()
        for field, other in cards.items():
            if seen - _seen(other) > 4 * LIFE_MS:
                await self._bus.command("HDEL", self._names.presence, field)
        self._roster = await self._known(_alive(cards, seen))

    async def leave(self, agent: str, instance: str) -> None:
        """Say that we go."""
        await self._bus.command("HDEL", self._names.presence, f"{agent}/{instance}")
        card = {"agent": agent, "instance": instance, "status": "offline", "timestamp": now()}
        await self._bus.publish(self._names.channel(STATUS), json.dumps(card))

    async def here(self, agent: str | None = None) -> list[dict[str, Any]]:
        """The cards of those who are here, each with `age_ms` since its heartbeat."""
        seen = await self._now()
        cards = _alive(await self._all(), seen)
        return [card for card in cards if agent is None or card.get("agent") == agent]

    async def roster(self) -> dict[str, str]:
        """Every agent that is or was here, with what it says it is for.

        Who beats has it at hand: as of the last beat, and of the heartbeats that were `met` since.
        """
        return dict(self._roster) if self._roster is not None else await self._known(await self.here())

    def met(self, card: dict[str, Any]) -> None:
        """A heartbeat was heard."""
        if self._roster is not None and isinstance(agent := card.get("agent"), str) and is_agent(agent):
            self._roster[agent] = str(card.get("about") or "")

    async def _known(self, cards: list[dict[str, Any]]) -> dict[str, str]:
        known = dict.fromkeys(await self.agents(), "")
        here = {str(card.get("agent")): str(card.get("about", "")) for card in cards}
        return known | {name: about for name, about in here.items() if is_agent(name)}

    async def agents(self) -> list[str]:
        """Every agent that has ever been here, by name."""
        known = await self._bus.command("SMEMBERS", self._names.agents)
        return sorted(name for one in known if is_agent(name := one.decode("utf-8", "replace")))

    async def _all(self) -> dict[str, dict[str, Any]]:
        flat = await self._bus.command("HGETALL", self._names.presence)
        pairs = iter(flat)
        found = {}
        for field, value in zip(pairs, pairs, strict=True):
            try:
                card = json.loads(value)
            except ValueError:
                continue
            if isinstance(card, dict) and is_agent(str(card.get("agent"))):
                found[field.decode("utf-8", "replace")] = card
        return found


def _seen(card: dict[str, Any]) -> int:
    seen = card.get("seen")
    return seen if isinstance(seen, int) else 0


def _alive(cards: dict[str, dict[str, Any]], now_ms: int) -> list[dict[str, Any]]:
    aged = [card | {"age_ms": now_ms - _seen(card)} for card in cards.values()]
    return [card for card in aged if card["age_ms"] <= LIFE_MS]
