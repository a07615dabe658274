"""What becomes of a task's branch: merged, thrown away, or tried against others before anybody merges it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ValidationError

from shared.errors import Busy, ToolError, sentences
from shared.guard.git.merging import Merger
from shared.store.base import Store
from shared.store.records import Repo, Task, TaskEvent, TaskResult
from shared.store.row import derived, now
from shared.tasks import fate, graph, states
from shared.tasks.names import slug
from shared.tasks.worktree.acquire import PREFIX, place
from shared.tasks.worktree.lock import WorktreeLock
from shared.tasks.worktree.message import merge as message
from shared.tasks.worktree.message import title
from shared.tasks.worktree.mirrors import Mirrors
from shared.tasks.worktree.receipt import Clash, Receipt, describe

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


async def source(repos: Mirrors, repo: Repo, fresh: bool = False) -> Merger:
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


async def _branch(store: Store, task: Task, allowed: tuple[str, ...], what: str) -> str:
    if not task.branch:
        raise ToolError(f"the task {task.slug} has no branch", await fate.nothing(store, task), "")
    if task.status not in allowed:
        fix = _NOW.get(task.status, "wait for its end, or end it with stop_task")
        raise ToolError(f"the task {task.slug} cannot be {what}", f"it is {task.status}", fix)
    return task.branch


async def merge(repos: Mirrors, repo: Repo, store: Store, task: Task, actor: str, key: str) -> Merged:
    """Merge a task's branch into the default branch, and complete the task where it waited for that.

    A linked repository gets it as it lies there; a mirror's is pushed, where the repository grants it.
    """
    branch = await _branch(store, task, _MERGED, "merged")
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
    last = (await fate.events(store, [task.id])).get(task.id)
    start, changed = await _again(repo, git, task, old, last, actor)
    made = start if start != old else ""
    trial = await git.trial(start, head)
    if trial.base != head:  # else it was merged before
        if trial.clashes:
            raise _clashing(repo, task, branch, trial.clashes)
        # Of two commits that stay what they are, the trial is the merge; `_put` looks whether they are the newest.
        made = await git.join(start, head, trial.tree, await _message(store, task), actor)
    if made:
        with _saying(f"{branch!r} was not merged into {repo.default_branch!r}"):
            await _put(repos, repo, git, old, made)
    if made or last is None or last.event != fate.MERGED:
        detail = {"commit": made or head, "into": repo.default_branch}
        detail |= {"before": old, "taken": _taken(last)} if made else {}
        await _note(store, task, fate.MERGED, actor, key, detail)
    if task.status == "AWAITING_APPROVAL":
        await states.move(store, task.id, "approved", actor, key, ended_at=now())
    along = await _along(store, repo, git, task, actor, key)
    files = sorted({*changed, *trial.changed}) if made else trial.changed
    return Merged(made, branch, repo.default_branch, files, along)


def _clashing(repo: Repo, task: Task, branch: str, files: list[str]) -> ToolError:
    return ToolError(
        f"{branch!r} cannot be merged into {repo.default_branch!r}",
        f"conflicts in {', '.join(files[:10])}{' and more' if files[10:] else ''}: both branches changed them",
        f"promptdock tasks changes {task.slug} TEXT asks its agent to bring it up to date",
    )


@contextlib.contextmanager
def _saying(what: str) -> Iterator[None]:
    """Of an error it is said first what came to nothing by it."""
    try:
        yield
    except ToolError as error:
        raise type(error)(what, sentences(error.what, error.why), error.fix) from None


def _taken(last: TaskEvent | None) -> str:
    """The commit that took the work out; "" where none did."""
    return str(last.detail.get("commit") or "") if last is not None and last.event == fate.UNMERGED else ""


async def _again(
    repo: Repo, git: Merger, task: Task, old: str, last: TaskEvent | None, actor: str
) -> tuple[str, list[str]]:
    """Where a merge starts, and what that changes: what took the work out before is itself taken back."""
    taken = _taken(last)
    if not taken or not await git.commit_of(taken) or not await git.contains(old, taken):
        return old, []
    trial = await git.without(old, taken, (await git.parents(taken))[0])
    if trial.clashes:
        raise _clashing(repo, task, str(task.branch), trial.clashes)
    text = f"Bring back {task.slug}: {title(task.description, task.title)}\n"
    return await git.undo(old, trial.tree, text, actor), trial.changed


@dataclass(frozen=True)
class Unmerged:
    """What became of a merge that was undone; `commit` is "" where the branch is simply what it was before."""

    commit: str
    into: str
    along: list[str] = field(default_factory=list)


async def unmerge(repos: Mirrors, repo: Repo, store: Store, task: Task, actor: str, key: str) -> Unmerged:
    """Undo the merge of a task's branch, which stays. Nothing that came after it, and no person's change, is lost.

    Where nothing came after and nobody else can have it, the default branch is what it was before; else a commit
    takes the work out again.
    """
    last = (await fate.events(store, [task.id])).get(task.id)
    if last is None or last.event != fate.MERGED:
        raise ToolError(f"the task {task.slug} is not merged", "there is no merge that could be undone", "")
    if with_ := last.detail.get("with"):
        raise ToolError(
            f"{task.slug} came with {with_}", "that one was merged", f"promptdock tasks unmerge {with_}"
        )
    into, merged = repo.default_branch, str(last.detail.get("commit"))
    git = await source(repos, repo, fresh=True)
    old = await repos.base(repo, git)
    if merged == await git.commit_of(f"refs/heads/{task.branch}"):
        why = "it was no merge of ours that brought it there"
        raise ToolError(f"the merge of {task.slug} cannot be undone", why, "git revert undoes it")
    made = await _out(repos, repo, git, old, last, task, actor)
    # Where the branch is what it was before, what had taken the work out earlier does so again.
    taken = made or str(last.detail.get("taken") or "")
    await _note(store, task, fate.UNMERGED, actor, key, {"commit": taken, "merge": merged, "into": into})
    along = []
    for row in await graph.tasks(store, await graph.closure(store, task.id, upstream=True)):
        event = (await fate.events(store, [row.id])).get(row.id)
        if event is not None and event.event == fate.MERGED and event.detail.get("with") == task.slug:
            await _note(
                store, row, fate.UNMERGED, actor, f"{key}:{row.slug}", {"with": task.slug, "into": into}
            )
            along.append(row.slug)
    return Unmerged(made, into, along)


async def _out(
    repos: Mirrors, repo: Repo, git: Merger, old: str, last: TaskEvent, task: Task, actor: str
) -> str:
    """Take out of the default branch, which stands at `old`, what a merge brought; the commit that does it, or ""."""
    merged, into = str(last.detail.get("commit")), repo.default_branch
    if not await git.commit_of(merged) or not await git.contains(old, merged):
        return ""  # by a person, or by us before a crash
    before = str(last.detail.get("before") or (await git.parents(merged))[0])
    kept = await git.commit_of(f"refs/heads/{task.branch}")  # else the work would be nowhere any more
    if old == merged and kept and repo.path and await git.holders(merged) == [f"refs/heads/{into}"]:
        with _saying(f"the merge of {task.slug} is not undone in {into!r}"):
            await git.retreat(into, old, before)
        return ""
    trial = await git.without(old, merged, before)
    if trial.clashes:
        why = f"what came after it changed the same: {', '.join(trial.clashes[:10])}"
        raise ToolError(f"the merge of {task.slug} cannot be undone", why, f"git revert -m 1 {merged[:12]}")
    text = (
        f"Undo the merge of {task.slug}: {title(task.description, task.title)}\n\nThis takes out {merged}.\n"
    )
    made = await git.undo(old, trial.tree, text, actor)
    with _saying(f"the merge of {task.slug} is not undone in {into!r}"):
        await _put(repos, repo, git, old, made)
    return made


async def _message(store: Store, task: Task) -> str:
    """What the merge says: the task, what was asked, what its agent says of it, and what stands behind that."""
    order: list[tuple[str, Literal["asc", "desc"]]] = [("created_at", "desc")]
    rows = await store.select(TaskResult, {"task_id": task.id}, order=order, limit=1)
    proof = ""
    if rows and rows[0].receipt:
        with contextlib.suppress(ValidationError):
            proof = describe(Receipt.model_validate(rows[0].receipt))
    head = title(task.description, task.title)
    return message(task.slug, head, task.description, rows[0].summary if rows else "", proof)


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
        last = (await fate.events(store, [row.id])).get(row.id)
        if (
            last is not None
            and last.event == fate.MERGED
            and last.id != derived("task-event", id, fate.MERGED)
        ):
            continue  # merged before, by itself or with another
        await _note(store, row, fate.MERGED, actor, id, {"commit": head, **into})
        came.append(row.slug)
    return came


async def _put(repos: Mirrors, repo: Repo, git: Merger, old: str, made: str) -> None:
    if repo.path:
        await git.advance(repo.default_branch, old, made)
        return
    # Of a mirror, our own branch of that name is only what is pushed; the remote refuses it if it moved.
    await git.advance(repo.default_branch, await git.commit_of(f"refs/heads/{repo.default_branch}"), made)
    with _saying(f"{repo.url} did not take the branch {repo.default_branch!r}"):
        await git.push(repo.default_branch, reach=repos.reach)


async def discard(repos: Mirrors, repo: Repo, store: Store, task: Task, actor: str, key: str) -> None:
    """Throw away what a task made: its branch and its worktree. Its receipt stays, and so does what is merged."""
    branch = await _branch(store, task, DONE, "discarded")
    last = (await fate.events(store, [task.id])).get(task.id)
    if last is not None and last.event == fate.MERGED:
        with_ = last.detail.get("with")
        raise ToolError(
            f"the task {task.slug} cannot be discarded",
            f"its work is in {last.detail.get('into') or repo.default_branch}"
            + (f": it came with {with_}" if with_ else ""),
            f"undo that merge first: promptdock tasks unmerge {with_ or task.slug}; "
            "promptdock tasks prune clears away branches that are merged",
        )
    await clear(repos, repo, task.slug)
    git = await source(repos, repo)
    if await git.commit_of(f"refs/heads/{branch}"):
        await git.delete_branch(branch, force=True)
    await _note(store, task, fate.DISCARDED, actor, key, {"branch": branch})
    if task.status == "AWAITING_APPROVAL":
        await states.move(store, task.id, "closed", actor, key, branch=None)
    else:
        await store.update(
            Task,
            {"branch": None, "version": task.version + 1, "updated_at": now()},
            {"id": task.id, "version": task.version},
        )


async def clear(repos: Mirrors, repo: Repo, name: str) -> bool:
    """Remove a task's worktree where one is left that nobody works in; whether there was one."""
    path = place(repos, repo, name)
    lock = WorktreeLock(path.parent, slug(name), 0)
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
