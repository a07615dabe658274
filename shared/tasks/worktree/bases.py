"""What a task builds on: the work of the tasks that it waited for, put together before it begins."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import Lasting
from shared.guard.git.merging import Merger
from shared.store.base import Store
from shared.store.records import Repo, Task
from shared.tasks import graph

_AUTHOR = "harness"


async def branches(store: Store, task: Task, repo: Repo) -> tuple[str, ...]:
    """The branches in this repository of all that the task needed, nearest first.

    What failed and was skipped is none of them: the task goes on without it.
    """
    needed = await graph.tasks(store, await graph.closure(store, task.id, upstream=True))
    return tuple(row.branch for row in needed if row.branch and row.repo_id == repo.id and not row.error)


async def joined(git: Merger, start: str, needs: Sequence[str]) -> str:
    """The commit that holds `start` and all these branches; a merge only where one line of history will not do.

    A branch that is not here (discarded, or made on another machine and never pushed) is left out. Lasting
    where they conflict: what to keep is no decision of ours.
    """
    whole = start
    for branch in needs:
        head = await _here(git, branch)
        if not head or head == whole:
            continue
        trial = await git.trial(whole, head)
        if trial.base in (head, whole):  # one holds the other
            whole = head if trial.base == whole else whole
            continue
        if trial.clashes:
            raise Lasting(
                "the work that this task needs cannot be put together",
                f"{branch} conflicts with the rest of it in {', '.join(trial.clashes[:10])}",
                f"promptdock tasks changes {branch.rpartition('/')[2]} TEXT has its agent correct that",
            )
        whole = await git.join(
            whole, head, trial.tree, f"Bring in {branch} for a task that needs it\n", _AUTHOR
        )
    return whole


async def _here(git: Merger, branch: str) -> str:
    local = await git.commit_of(f"refs/heads/{branch}")
    return local or await git.commit_of(f"refs/remotes/origin/{branch}") or ""
