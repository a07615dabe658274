"""The scratch repository: what the demo model works on where no repository is registered."""

from __future__ import annotations

import os
from pathlib import Path

from shared import log
from shared.errors import PromptDockError
from shared.guard.files import lock as flock
from shared.store.base import Store
from shared.store.records import Repo
from shared.tasks.defaults import SCRATCH, SCRATCH_ID
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools.context import Context
from shared.tools.projects import repositories


async def ensure(store: Store, repos: Mirrors, home: Path) -> None:
    """Make and register it in the project `default`, unless some repository is there already."""
    try:
        if await store.select(Repo, limit=1):
            return
        lock = await flock.acquire(home / "scratch.lock", 10)
        try:
            here = Context("person", "", "scratch", store, repos=repos)
            path = str(home / SCRATCH)
            await repositories.add_repo(here, "init", path=path, name=SCRATCH)
            for row in await store.select(Repo, {"name": SCRATCH, "path": path, "id": ("ne", SCRATCH_ID)}):
                await store.delete(Repo, {"id": row.id})
                await store.insert(row.model_copy(update={"id": SCRATCH_ID}))
        finally:
            os.close(lock)
    except PromptDockError as error:
        log.get().warning("There is no scratch repository for the demo", why=str(error))
