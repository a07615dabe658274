"""What becomes of a task's branch: merged, thrown away, or tried against others before anybody merges it."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.errors import Busy, ToolError
from shared.guard.merging import Merger
from shared.store.base import Store
from shared.store.records import Repo, Task, TaskEvent
from shared.store.row import derived, now
from shared.tasks import graph, machine
from shared.tasks.hold import Hold
from shared.tasks.names import slug
from shared.tasks.receipt import Clash
from shared.tasks.repos import Repos
from shared.tasks.worktree import PREFIX, place

DONE = ("COMPLETED", "AWAITING_APPROVAL", "FAILED", "BLOCKED")
_MERGED = ("COMPLETED", "AWAITING_APPROVAL")
_OTHERS = 20  # branches that one is tried against


@dataclass(frozen=True)
class Merged:
    """What a merge came to; `commit` is "" where the branch was merged before, `along` names tasks within it."""

    commit: str
    branch: str
    into: str
    files: list[str]
    along: list[str] = field(default_factory=list)


async def source(repos: Repos, repo: Repo, fresh: bool = False) -> Merger:
    """The repository, to merge in."""
    git = await repos.source(repo, fresh)
    return Merger(git.path, git.sandbox, git.lock, git.where, git.known)


async def clashes(git: Merger, branch: str, into: str, name: str) -> list[Clash]:
    """Where it cannot be merged: with the commit `into`, called `name`, or with what other tasks have made."""
    others = await git.unmerged(PREFIX.rstrip("/"), into, _OTHERS)
    head = others.pop(branch, "") or await git.commit_of(f"refs/heads/{branch}") or branch
    heads = {name: into, **others}
    found = zip(heads, await git.clashes_with(head, list(heads.values())), strict=True)
    return [Clash(branch=called, files=files) for called, files in found if files]


_NOW = {"FAILED": "begin it again with restart_task", "BLOCKED": "begin it again with restart_task"}


def _branch(task: Task, states: tuple[str, ...], what: str) -> str:
    if not task.branch:
        raise ToolError(f"the task {task.slug} has no branch", f"it is {task.status}", "")
    if task.status not in states:
        fix = _NOW.get(task.status, "wait for its end, or end it with stop_task")
        raise ToolError(f"the task {task.slug} cannot be {what}", f"it is {task.status}", fix)
    return task.branch


async def merge(repos: Repos, repo: Repo, store: Store, task: Task, actor: str, key: str) -> Merged:
    """Merge a task's branch into the default branch, and complete the task where it waited for that.

    A linked repository gets it as it lies there; a mirror's is pushed, where the repository grants it.
    """
    branch = _branch(task, _MERGED, "merged")
    git = await source(repos, repo, fresh=True)
    head = await git.commit_of(f"refs/heads/{branch}")
    if not head:
        raise ToolError(
            f"the branch {branch!r} is not here", "it was made on another machine, or removed", ""
        )
    if not repo.path and not repo.push_tasks:
        raise ToolError(
            f"{branch!r} was not merged",
            f"{repo.name!r} is a mirror, and nothing may be pushed to {repo.url}",
            "register it with --push, or fetch the branch and merge it where the repository lies",
        )
    old = await repos.base(repo, git)
    made = ""
    trial = await git.trial(old, head)
    if trial.base != head:  # else it was merged before
        if trial.clashes:
            raise ToolError(
                f"{branch!r} cannot be merged into {repo.default_branch!r}",
                f"conflicts in {', '.join(trial.clashes[:10])}",
                f"promptdock tasks changes {task.slug} TEXT asks its agent to bring it up to date",
            )
        # Of two commits that stay what they are, the trial is the merge; `_put` looks whether they are the newest.
        made = await git.join(old, head, trial.tree, f"Merge {task.slug}: {task.title}\n", actor)
        await _put(repos, repo, git, old, made)
    await _note(store, task, "merged", actor, key, {"commit": made or head, "into": repo.default_branch})
    if task.status == "AWAITING_APPROVAL":
        await machine.move(store, task.id, "approved", actor, key, ended_at=now())
    along = await _along(store, repo, git, task, actor, key)
    return Merged(made, branch, repo.default_branch, trial.changed, along)


async def _along(store: Store, repo: Repo, git: Merger, task: Task, actor: str, key: str) -> list[str]:
    """The tasks that this one was built on: their work has come with it, which their histories say too."""
    came, into = [], {"with": task.slug, "into": repo.default_branch}
    for row in await graph.tasks(store, await graph.closure(store, task.id, upstream=True)):
        if row.repo_id != repo.id or row.status != "COMPLETED" or not row.branch or row.error:
            continue
        head = await git.commit_of(f"refs/heads/{row.branch}")
        if not head or not await git.contains(f"refs/heads/{task.branch}", head):
            continue
        id = f"{key}:{row.slug}"
        told = await store.select(TaskEvent, {"task_id": row.id, "event": "merged"}, limit=1)
        if told and told[0].id != derived("task-event", id, "merged"):
            continue  # merged before, by itself or with another
        await _note(store, row, "merged", actor, id, {"commit": head, **into})
        came.append(row.slug)
    return came


async def _put(repos: Repos, repo: Repo, git: Merger, old: str, made: str) -> None:
    if repo.path:
        await git.advance(repo.default_branch, old, made)
        return
    # Of a mirror, our own branch of that name is only what is pushed; the remote refuses it if it moved.
    await git.advance(repo.default_branch, await git.commit_of(f"refs/heads/{repo.default_branch}"), made)
    await git.push(repo.default_branch, reach=repos.reach)


async def discard(repos: Repos, repo: Repo, store: Store, task: Task, actor: str, key: str) -> None:
    """Throw away what a task made: its branch and its worktree. Its receipt stays."""
    branch = _branch(task, DONE, "discarded")
    await clear(repos, repo, task.slug)
    git = await source(repos, repo)
    if await git.commit_of(f"refs/heads/{branch}"):
        await git.delete_branch(branch, force=True)
    await _note(store, task, "discarded", actor, key, {"branch": branch})
    if task.status == "AWAITING_APPROVAL":
        await machine.move(store, task.id, "closed", actor, key, branch=None)
    else:
        await store.update(
            Task,
            {"branch": None, "version": task.version + 1, "updated_at": now()},
            {"id": task.id, "version": task.version},
        )


async def clear(repos: Repos, repo: Repo, name: str) -> bool:
    """Remove a task's worktree where one is left that nobody works in; whether there was one."""
    path = place(repos, repo, name)
    lock = Hold(path.parent, slug(name), 0)
    if lock.living():
        raise Busy(f"the task {name} is being worked on", "its worker is alive", "stop_task ends it")
    if not path.exists() and not lock.known():
        return False
    await lock.take()
    try:
        await (await repos.source(repo)).worktree_clear(path)
    finally:
        await lock.release(forget=True)
    return True


async def _note(store: Store, task: Task, event: str, actor: str, key: str, detail: dict[str, str]) -> None:
    row = TaskEvent(
        id=derived("task-event", key, event), task_id=task.id, project_id=task.project_id, event=event,
        from_status=task.status, to_status=task.status, actor=actor, epoch=task.epoch, detail=detail,
    )  # fmt: skip
    await store.upsert([row])
