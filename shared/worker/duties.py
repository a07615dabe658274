"""What an agent's worker does and says beside its turns: rows to the Store, log lines, models, its MCP servers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from shared import log
from shared.errors import ConfigurationError
from shared.profiles.profile import Profile
from shared.turns.outbox import Apply, Outbox
from shared.worker.log_shipping import LogShipping
from shared.worker.resources import Resources


class AgentDuties:
    """Those of one agent that thinks. `beside` is what its process does for all, given its instance's name."""

    def __init__(
        self,
        resources: Resources,
        profile: Profile,
        appliers: dict[str, Apply],
        model: Callable[[], str],
        beside: Callable[[str], dict[str, Coroutine[Any, Any, None]]] = lambda _instance: {},
    ) -> None:
        self._resources, self._profile, self._appliers = resources, profile, appliers
        self._model = model  # the name of the one that it thinks with now
        self._beside = beside

    def begin(self, instance: str, busy: Callable[[], bool]) -> dict[str, Coroutine[Any, Any, None]]:
        """The services of one worker."""
        connection = self._resources.connection
        self._outbox = Outbox(
            *(connection.bus, connection.names, self._resources.store, self._profile.name, instance),
            self._appliers,
        )
        self._shipping = LogShipping(self._outbox, self._profile.name)
        log.add_sink(self._shipping.take)
        return {
            "outbox": self._outbox.run(busy=busy),
            "logs": self._shipping.run(),
            **self._beside(instance),
        }

    def facts(self) -> dict[str, Any]:
        """What its heartbeat says of it."""
        profile, resources = self._profile, self._resources
        return {
            "about": profile.description,
            "kind": profile.kind,
            "row": profile.row or None,
            "repositories": sorted(profile.works_on),
            "plans": profile.plans,
            "model": self._model(),
            "provider": resources.model.name,
            "demo": resources.model.demo,
            "store": resources.store.name,
            "sandbox": resources.sandbox.short,
            "mcp": [one.card() for one in resources.mcp.health],
            "home": resources.home,
        }

    def shown(self) -> object:
        """Which servers are here."""
        return [(one.name, one.state, one.tries) for one in self._resources.mcp.health]

    def hurry(self) -> None:
        """Try servers again that are away."""
        self._resources.mcp.hurry()

    async def admit(self) -> None:
        """In production nobody looks at a warning: two SQLite files are two histories, and tasks that hang."""
        mine = (self._resources.store.name, self._resources.home)
        if self._resources.settings.env != "production" or mine[0] != "sqlite":
            return
        for card in await self._resources.connection.presence.here():
            if card.get("store") == "sqlite" and card.get("home") != mine[1]:
                raise ConfigurationError(
                    "SUPABASE_URL is not set",
                    f"{card.get('agent')} runs on another disk, with a SQLite file of its own",
                    "set SUPABASE_URL and its key for all workers, or give them one data folder",
                )

    def ready(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Say so, and have the model's connection made before the first turn."""
        log.get().info(f"{self._profile.called} ready", model=self._model(), demo=self._resources.model.demo)
        spawn(self._resources.model.warm())

    def turn_ended(self) -> None:
        """The end of a task is waited for, by its project and by others; all else has time."""
        if self._profile.kind == "coding":
            self._outbox.wake()
        else:
            self._outbox.soon()

    async def hand_over(self) -> None:
        """Bring what was logged and what happened to the Store."""
        await self._shipping.flush()
        await self._outbox.drain()

    async def leave(self) -> None:
        """Ship no lines any more."""
        log.remove_sink(self._shipping.take)
