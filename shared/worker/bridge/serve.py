"""The process of a bridge: a worker whose agent is a command line, and which needs neither a Store nor a model."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from shared import log
from shared.bus.presence import PASSING, Presence
from shared.guard.processes.plan import AGENTS
from shared.profiles.bridged import Bridged
from shared.profiles.profile import Profile
from shared.settings import Settings
from shared.worker import resources as composition
from shared.worker.bridge.runner import BridgeRunner
from shared.worker.worker import Worker

_PATIENCE = 20.0  # seconds that the request in hand has at the end


class BridgeDuties:
    """None, but to say what it is. Rows and messages of it are brought to the Store by the cluster's workers."""

    def __init__(self, bridged: Bridged, presence: Presence) -> None:
        self._bridged, self._presence = bridged, presence

    def begin(self, _instance: str, _busy: Callable[[], bool]) -> dict[str, Coroutine[Any, Any, None]]:
        """Nothing runs beside its turns."""
        return {}

    def facts(self) -> dict[str, Any]:
        """What its heartbeat says of it."""
        about = self._bridged.about or f"answers with: {self._bridged.command[:80]}"
        return {"about": about, "kind": PASSING}

    def shown(self) -> object:
        """Nothing of that changes."""

    def hurry(self) -> None:
        """Nothing waits."""

    async def admit(self) -> None:
        """It may work anywhere."""

    def ready(self, _spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Say so."""
        log.get().info(f"{self._bridged.name} ready")

    def turn_ended(self) -> None:
        """Nothing follows from it here."""

    async def hand_over(self) -> None:
        """Nothing else is kept."""

    async def leave(self) -> None:
        """It lives as long as somebody's command: with it goes its name, unless something waits for it."""
        if self._bridged.name not in AGENTS:
            await self._presence.retire(self._bridged.name)


async def serve(settings: Settings, bridged: Bridged) -> None:
    """One bridge, until it is stopped."""
    bridged.check()
    log.bind_contextvars(agent=bridged.name)
    resources = await composition.connect(settings, bridged.name)
    presence = resources.connection.presence
    try:
        await bridged.check_free(presence)
        profile = Profile(name=bridged.name, title=bridged.name, turns=1)
        duties = BridgeDuties(bridged, presence)
        worker = Worker(
            *(resources, profile, lambda turn: BridgeRunner(resources, bridged, turn), duties),
            patience=_PATIENCE,
        )
        worker.listen_for_signals()
        await worker.run()
    finally:
        await resources.close()
