"""The scratch repository: what the demo model works on where no repository is registered."""

from __future__ import annotations

import os

from shared import log
from shared.errors import PromptDockError
from shared.guard.files import lock as flock
from shared.store.records import Repo
from shared.tasks.defaults import SCRATCH, SCRATCH_ID
from shared.tools.context import Context
from shared.tools.projects import repositories
from shared.worker.resources import Resources


async def ensure(parts: Resources) -> None:
    """Make and register it in the project `default`, unless some repository is there already."""
    try:
        if await parts.store.select(Repo, limit=1):
            return
        lock = await flock.acquire(parts.settings.home / "scratch.lock", 10)
        try:
            here = Context("person", "", "scratch", parts.store, extras={"repos": parts.repos})
            path = str(parts.settings.home / SCRATCH)
            await repositories.add_repo(here, "init", path=path, name=SCRATCH)
            for row in await parts.store.select(
                Repo, {"name": SCRATCH, "path": path, "id": ("ne", SCRATCH_ID)}
            ):
                await parts.store.delete(Repo, {"id": row.id})
                await parts.store.insert(row.model_copy(update={"id": SCRATCH_ID}))
        finally:
            os.close(lock)
    except PromptDockError as error:
        log.get().warning("There is no scratch repository for the demo", why=str(error))
