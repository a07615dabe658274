"""Category review: what a person makes of a task's work, and of its question."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field

from shared.errors import ToolError
from shared.guard.git.checkout import Checkout
from shared.guard.permissions import secret_files
from shared.guard.permissions.touching import touching
from shared.store.records import Repo, Task
from shared.store.row import new_id, now
from shared.tasks import fate
from shared.tasks.worktree import merge
from shared.tasks.worktree import prune as pruning
from shared.tools import checkouts, lookup
from shared.tools.context import Context
from shared.tools.detail import digest, words
from shared.tools.registry import Category, Result

category = Category("review", "Merge or throw away what a task made, and answer what it asks")

TEXT = 40_000  # bytes of one file's diff
_FILES = 100


def _task(arguments: dict[str, Any]) -> str:
    return str(arguments.get("task_id") or "")


def _answered(arguments: dict[str, Any]) -> str:
    """The task, and a name for what is answered."""
    return words(_task(arguments), digest(arguments))


async def repo_of(here: Context, task: Task) -> Repo:
    """The repository that a task works in."""
    if task.repo_id and (found := await lookup.first(here.store, Repo, id=task.repo_id)):
        return found
    known = await here.store.select(Repo, {"project_id": task.project_id}, limit=2)
    if len(known) != 1:
        raise ToolError(f"it is not known in which repository {task.slug} worked", "", "get_task shows it")
    return known[0]


async def _merged(here: Context, task_id: str) -> dict[str, str]:
    """Both sides of a merge, and where it is pushed if the repository is a mirror. Nobody is asked for news of them."""
    task = await lookup.task(here.store, task_id)
    repo = await repo_of(here, task)
    address = {"address": repo.url} if repo.url and not repo.path else {}
    git = checkouts.repos(here).here(repo)
    if git is None or not task.branch:
        return address
    theirs, ours = (
        await git.commit_of(f"refs/heads/{task.branch}"),
        await checkouts.repos(here).base(repo, git),
    )
    changes = await git.amount(ours, theirs) if theirs else ""
    return {**address, "commit": theirs, "into": ours, "changes": changes}


@category.tool(effect="idempotent", detail=_task, binds=_merged, touches=touching("merge"))
async def merge_task(here: Context, task_id: str) -> Result:
    """Merge what a task made into its repository's default branch, and complete it; on conflicts only name them."""
    task = await lookup.task(here.store, task_id)
    lookup.need_word(here, task)
    repo = await repo_of(here, task)
    key = here.step_id or f"{task.slug}:{task.version}"
    done = await merge.merge(checkouts.repos(here), repo, here.store, task, here.agent, key)
    result: Result = {
        "merged": task.slug,
        "branch": done.branch,
        "into": done.into,
        "files": done.files[:_FILES],
        **({"came_with_it": done.along} if done.along else {}),
    }
    return result | ({"commit": done.commit} if done.commit else {"warning": "it was merged before"})


async def _undone(here: Context, task_id: str) -> dict[str, str]:
    """The default branch from which work is taken out, and where that is pushed."""
    task = await lookup.task(here.store, task_id)
    repo = await repo_of(here, task)
    git = checkouts.repos(here).here(repo)
    address = {"address": repo.url} if repo.url and not repo.path else {}
    return address | ({"into": await checkouts.repos(here).base(repo, git)} if git is not None else {})


@category.tool(effect="idempotent", detail=_task, binds=_undone, touches=touching("merge"))
async def unmerge_task(here: Context, task_id: str) -> Result:
    """Undo the merge of a task: its work leaves the default branch; its own branch stays, to be merged again."""
    task = await lookup.task(here.store, task_id)
    key = here.step_id or f"{task.slug}:{new_id()}"
    done = await merge.unmerge(
        checkouts.repos(here), await repo_of(here, task), here.store, task, here.agent, key
    )
    result: Result = {
        "unmerged": task.slug,
        "branch": task.branch,
        "from": done.into,
        "commit": done.commit or None,
    }
    result |= {"went_with_it": done.along} if done.along else {}
    return result


@category.tool(effect="idempotent", detail=_task, touches=touching("loss"))
async def discard_task(here: Context, task_id: str) -> Result:
    """Throw away a task's branch and worktree. Its receipt stays."""
    task = await lookup.task(here.store, task_id)
    if not task.branch and here.intended is not None:
        return dict(here.intended["told"])  # discarded by this very call, before a crash
    result = {"discarded": task.slug, "branch": task.branch, "title": task.title}
    result = await lookup.removing(here, result)
    key = here.step_id or f"{task.slug}:{task.version}"
    await merge.discard(checkouts.repos(here), await repo_of(here, task), here.store, task, here.agent, key)
    return result


@category.tool(
    effect="idempotent",
    detail=lambda arguments: "look" if arguments.get("dry_run", True) else "remove",
    touches=touching("records", dry_run="loss"),
)
async def prune_tasks(
    here: Context,
    project_id: str | None = None,
    days: Annotated[float, Field(ge=0, le=36_500)] | None = None,
    dry_run: bool = True,
) -> Result:
    """Clear away what merged and discarded tasks have left: branches, worktrees. Work that is not merged stays.

    With `days` also tasks that ended longer ago, with their histories. With `dry_run` nothing is removed.
    """
    project = (await lookup.project(here.store, project_id)).id if project_id else None
    before = now() - timedelta(days=days) if days is not None else None
    found = await pruning.prune(checkouts.repos(here), here.store, project, before, really=not dry_run)
    return {
        "dry_run": dry_run,
        "branches": found.branches,
        "worktrees": found.worktrees,
        "tasks": found.tasks,
    }


@category.tool(effect="pure", detail=_task, touches=touching("files"))
async def review_task(here: Context, task_id: str) -> Result:
    """What a task changed, file by file, and whether it merges as it is."""
    task = await lookup.task(here.store, task_id)
    if not task.branch:
        raise ToolError(f"the task {task_id} has no branch", await fate.nothing(here.store, task), "")
    repo = await repo_of(here, task)
    repos = checkouts.repos(here)
    git = await merge.source(repos, repo)
    start = await repos.base(repo, git)
    trial = await git.trial(start, task.branch)
    became = (await fate.fates(here.store, [task.id])).get(task.id)
    if became == fate.MERGED and not trial.changed and task.base_commit:
        changed = await git.changed_files(task.base_commit, task.branch)  # as it was before
        trial = replace(trial, base=task.base_commit, changed=changed)
    diffs = [await _diff(git, trial.base, path, task.branch) for path in trial.changed[:_FILES]]
    result: Result = {
        "task_id": task.slug,
        "branch": task.branch,
        "base": trial.base,
        "into": repo.default_branch,
        "merged": became == fate.MERGED,
        "merges": not trial.clashes,
        "conflicts": trial.clashes,
        "files": diffs,
        "source": "repository",
    }
    return result | ({"truncated": True} if len(trial.changed) > _FILES else {})


async def _diff(git: Checkout, base: str, path: str, branch: str) -> dict[str, Any]:
    text = secret_files.without(await git.diff(base, path, to=branch, limit=TEXT))[0]
    lines = text.splitlines()
    body = [line for line in lines if not line.startswith(("+++", "---"))]
    added = sum(line.startswith("+") for line in body)
    removed = sum(line.startswith("-") for line in body)
    return {"path": path, "added": added, "removed": removed, "diff": text}


@category.tool(
    effect="keyed",
    detail=_answered,
    touches=touching("approval"),
)
async def answer_task(
    here: Context, task_id: str, answer: Annotated[str, Field(min_length=1, max_length=20_000)]
) -> Result:
    """Answer what a task asked the person: only what the person said."""
    task = await lookup.task(here.store, task_id)
    if here.cluster is None:
        raise ToolError("no cluster is at hand", "this tool runs inside a turn only")
    asked = await here.cluster.answer(task.slug, here.user_id or here.agent, answer)
    return {"answered": task.slug, "question": asked}
