"""`bridge`: a command line as an agent on the bus."""

from __future__ import annotations

from gateways.cli import screen
from shared.client.local import bridge
from shared.settings import Settings


async def serve(settings: Settings, bridged: bridge.Bridged) -> None:
    """Until it is interrupted."""
    await bridge.check(settings, bridged)
    screen.talk(f"{bridged.name} answers on agent:{bridged.name}; Ctrl-C ends it")
    bridge.become(settings, bridged)
