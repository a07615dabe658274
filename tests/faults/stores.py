"""The faults of the Store, as rows."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

from tests.faults.cluster import happens

if TYPE_CHECKING:
    from tests.faults.rows import Scene


async def store(scene: Scene) -> None:
    """Somebody keeps the Store's database locked, longer than anybody waits for it."""

    async def hurt() -> None:
        holder = sqlite3.connect(
            scene.cluster.site.home / "promptdock.db", timeout=5, check_same_thread=False
        )
        try:
            await asyncio.to_thread(holder.execute, "BEGIN EXCLUSIVE")
            await asyncio.sleep(1.5)
            holder.rollback()
        finally:
            holder.close()

    await scene.repeat(hurt)


async def store_full(scene: Scene) -> None:
    """The Store's disk takes nothing more: each write of the workers to any file fails, their logs included."""

    async def hurt() -> None:
        workers = [*scene.cluster.replicas("chatter"), *scene.cluster.replicas("planner")]
        with scene.cluster.no_room(workers):
            assert await happens(lambda: _waits_for_store(scene), 20), "the Store takes what it must refuse"
            await asyncio.sleep(1.5)

    await scene.repeat(hurt)


async def _waits_for_store(scene: Scene) -> bool:
    """Whether rows wait that a Store would have taken long ago: it is asked each second."""
    entries = await scene.cluster.bus.command(
        "XRANGE", f"{scene.cluster.queues['chatter'].prefix}archive", "-", "+", "COUNT", 1
    )
    seconds, _ = await scene.cluster.bus.command("TIME")
    return bool(entries) and int(entries[0][0].split(b"-")[0]) < (int(seconds) - 2) * 1000
