"""Becoming a bridge: what a person is told at once is looked at here, then this process is a worker."""

from __future__ import annotations

import sys
from typing import NoReturn

from shared.client.client import Client
from shared.client.local import supervision
from shared.profiles.bridged import Bridged
from shared.settings import Settings

__all__ = ["Bridged", "become", "check"]


async def check(settings: Settings, bridged: Bridged) -> None:
    """UsageError for a name or a command that cannot be; BusUnreachable where no cluster runs."""
    bridged.check()
    async with Client(settings) as client:
        await client.reach()
        await bridged.check_free(client.presence)


def become(settings: Settings, bridged: Bridged) -> NoReturn:
    """Go on as the worker of this agent."""
    sys.stdout.flush()
    sys.stderr.flush()
    words = ["--name", bridged.name, f"--exec={bridged.command}", "--timeout", str(bridged.seconds)]
    supervision.become("agents", settings.home, "bridge", *words, f"--about={bridged.about}")
