"""`restart`: the workers anew, one after the other."""

from __future__ import annotations

import asyncio
import time

from gateways.cli import screen
from shared.client import Client
from shared.client.local import supervision, web_address
from shared.client.views import status
from shared.errors import PromptDockError, Unreachable, UsageError
from shared.settings import Settings


async def restart(settings: Settings, agent: str | None) -> int:
    """Each is ended drained, and its successor awaited, before it is the next one's turn."""
    found = supervision.running(settings.home)
    if found is None:
        raise Unreachable(
            "no cluster that `up` started runs here",
            f"in {settings.home}; workers that something else started are restarted there",
            "start one with: promptdock up",
        )
    names = [
        name for name in (*found.replicas, *found.services) if agent in (None, name, name.partition("#")[0])
    ]
    if not names:
        there = ", ".join([*found.agents, *found.services]) or "none"
        raise UsageError(
            f"{agent} is not one of the agents that `up` runs here",
            f"there are: {there}",
            "promptdock status",
        )
    async with Client(settings) as client:
        for name in names:
            await _one(client, name)
        if agent is None and found.host is not None:
            await asyncio.to_thread(supervision.restart, settings.home, supervision.HOST, lambda _pid: True)
    return 0


async def _one(client: Client, name: str) -> None:
    loop, began = asyncio.get_running_loop(), time.monotonic()

    def here(pid: int) -> bool:
        if name in supervision.SERVICES:
            return web_address.pid(client.settings.home) == pid
        return asyncio.run_coroutine_threadsafe(_here(client, pid), loop).result(10)

    screen.talk(f"{name} hands over …")
    pid = await asyncio.to_thread(supervision.restart, client.settings.home, name, here)
    if pid is None:
        screen.talk(f"{name} does not run now; it is started again by itself")
    else:
        screen.out(f"{name}  here again after {time.monotonic() - began:.1f} s (process {pid})")


async def _here(client: Client, pid: int) -> bool:
    try:
        return bool(await status.processes(client, [pid]))
    except PromptDockError:
        return False
