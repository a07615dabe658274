"""Worktrees that nobody works in any more: of tasks that ended while their worker was dead."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

from shared import log
from shared.errors import PromptDockError
from shared.guard.git import worktrees
from shared.store.base import Store
from shared.store.records import Repo, Task
from shared.tasks.names import slug
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.lock import WorktreeLock
from shared.tasks.worktree.mirrors import Mirrors

_ENDED = ("COMPLETED", "FAILED", "BLOCKED", "AWAITING_APPROVAL")
_UNKNOWN = 24 * 3600.0  # seconds after which one of a task without a row is taken for left behind


async def sweep(repos: Mirrors, store: Store) -> list[str]:
    """Commit what was left in them to their branches, and remove them; the names of their tasks."""
    found = []
    await asyncio.to_thread(_clear, repos.home)
    for record in await asyncio.to_thread(_records, repos.home):
        name = record.stem
        if WorktreeLock(record.parent, name, 0).living():
            continue
        rows = await store.select(Task, {"slug": name}, limit=1)
        if rows[0].status not in _ENDED if rows else time.time() - record.stat().st_mtime < _UNKNOWN:
            continue
        repo = await _repo(store, rows[0] if rows else None, record.parent.name)
        if repo is None:
            continue
        try:
            await _end(repos, repo, name, rows[0].epoch if rows else 0)
        except PromptDockError as error:
            log.get().warning("A worktree that was left behind stays", task=name, why=str(error))
            continue
        log.get().info("A worktree that was left behind is gone; its branch stays", task=name)
        found.append(name)
    return found


def _clear(home: Path) -> None:
    """Remove files of worktrees whose worker was killed while it removed them; two at once do no harm."""
    for name in ("worktrees", "reading"):
        for folder in worktrees.parted(home / name):
            shutil.rmtree(folder, ignore_errors=True)


def _records(home: Path) -> list[Path]:
    return sorted((home / "worktrees").glob("*/*.json"))


async def _repo(store: Store, task: Task | None, folder: str) -> Repo | None:
    if task is not None and task.repo_id:
        rows = await store.select(Repo, {"id": task.repo_id}, limit=1)
    else:
        rows = [row for row in await store.select(Repo) if slug(row.name) == folder]
    return rows[0] if len(rows) == 1 else None


async def _end(repos: Mirrors, repo: Repo, name: str, epoch: int) -> None:
    tree = await Worktree.acquire(repos, repo, name, epoch)
    try:
        await tree.git.commit_all("Left behind by a worker that died", step=f"left:{name}:{epoch}")
        await tree.remove(force=True)
    except BaseException:
        await tree.release()
        raise
    await asyncio.to_thread(shutil.rmtree, repos.home / "executors" / name, True)
