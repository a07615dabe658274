"""What is left of tasks that have ended, and may go: merged branches, worktrees, old tasks themselves."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from shared import log
from shared.errors import Busy, ToolError
from shared.store.base import Store
from shared.store.records import Repo, Task, TaskDependency
from shared.tasks import fate, states
from shared.tasks.worktree import merge
from shared.tasks.worktree.acquire import PREFIX, place
from shared.tasks.worktree.mirrors import Mirrors

_MOST = 500  # tasks of one look


@dataclass(frozen=True)
class Leftovers:
    """What may go, by the names of tasks."""

    branches: list[str] = field(default_factory=list)  # all that they hold is in the default branch
    worktrees: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)  # with their histories and receipts


async def prune(
    repos: Mirrors,
    store: Store,
    project: UUID | None = None,
    before: datetime | None = None,
    really: bool = False,
) -> Leftovers:
    """What may go, and is gone where `really`. Tasks only that ended `before` a time, and wait for nobody.

    Work that is not merged stays, whatever its age.
    """
    where = {"status": ("in", list(states.ENDED))} | ({"project_id": project} if project else {})
    rows = await store.select(Task, where, order=[("created_at", "asc")], limit=_MOST)
    became = await fate.fates(store, [task.id for task in rows])
    told = Leftovers()
    for repo_id, tasks in _by_repo(rows).items():
        for repo in await store.select(Repo, {"id": repo_id}, limit=1):
            await _branches(repos, repo, store, tasks, became, told, really)
    if before is not None:
        await _tasks(store, rows, became, before, told, really)
    return told


def _by_repo(tasks: list[Task]) -> dict[UUID, list[Task]]:
    found = defaultdict(list)
    for task in tasks:
        if task.repo_id is not None:
            found[task.repo_id].append(task)
    return found


async def _branches(
    repos: Mirrors,
    repo: Repo,
    store: Store,
    tasks: list[Task],
    became: dict[UUID, str],
    told: Leftovers,
    really: bool,
) -> None:
    try:
        git = await merge.source(repos, repo)
        into = await repos.base(repo, git)
        there = set(await git.branches())
        for task in tasks:
            settled = task.id in became
            if settled and place(repos, repo, task.slug).exists():
                if really and not await merge.clear(repos, repo, task.slug):
                    continue
                told.worktrees.append(task.slug)
            branch = PREFIX + task.slug
            if branch in there and settled and await git.contains(into, f"refs/heads/{branch}"):
                if really:
                    await git.delete_branch(branch, force=True)
                told.branches.append(task.slug)
    except (ToolError, Busy) as error:
        log.get().warning("A repository was not looked through", repo=repo.name, why=str(error))


async def _tasks(
    store: Store, tasks: list[Task], became: dict[UUID, str], before: datetime, told: Leftovers, really: bool
) -> None:
    for task in tasks:
        if (task.ended_at or task.updated_at) >= before:
            continue
        if task.branch and task.id not in became:
            continue  # its work is still to be merged or thrown away
        edges = await store.select(TaskDependency, {"depends_on_id": task.id}, limit=50)
        waiting = [await store.select(Task, {"id": edge.task_id}, limit=1) for edge in edges]
        if any(rows and rows[0].status not in states.ENDED for rows in waiting):
            continue
        if not really or await store.delete(Task, {"id": task.id, "version": task.version}):
            told.tasks.append(task.slug)
