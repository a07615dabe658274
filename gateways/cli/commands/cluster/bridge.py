"""`bridge`: a command line as an agent on the bus."""

from __future__ import annotations

import re
import signal

from gateways.cli import screen
from shared.bus.messages import RESERVED
from shared.client import Client, bridge
from shared.client.local import supervision
from shared.errors import UsageError
from shared.settings import Settings


async def serve(settings: Settings, bridged: bridge.Bridged) -> None:
    """Until it is interrupted."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", bridged.name):
        raise UsageError(f"{bridged.name!r} is no name for an agent", "", "use small letters, digits, _ . -")
    if bridged.name in RESERVED:
        raise UsageError(
            f"no agent can be called {bridged.name}", "the name is reserved: a sender or a channel has it",
            "choose another",
        )  # fmt: skip
    bridge.check(bridged.command)
    async with Client(settings) as client:
        await client.reach()
        if bridged.name in supervision.AGENTS and await client.presence.here(bridged.name):
            raise UsageError(
                f"{bridged.name} is running already", "two would share its requests",
                f"leave it out: promptdock up -d --without {bridged.name}",
            )  # fmt: skip
        screen.talk(f"{bridged.name} answers on agent:{bridged.name}; Ctrl-C ends it")
        await bridge.serve(client, bridged, (signal.SIGTERM, signal.SIGINT))
