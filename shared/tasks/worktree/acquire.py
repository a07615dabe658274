"""A task's own checkout: a git worktree on a branch of its own; the main checkout is never touched."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared import log
from shared.errors import ToolError
from shared.guard.files.git_folder import layout
from shared.guard.git.commands import Git
from shared.guard.git.merging import Merger
from shared.store.records import Repo
from shared.tasks.names import slug
from shared.tasks.worktree import bases
from shared.tasks.worktree.lock import WorktreeLock
from shared.tasks.worktree.mirrors import Mirrors

PREFIX = "promptdock/"


@dataclass(frozen=True)
class Worktree:
    """A worktree that this worker holds. `base` is the commit that its branch started from: that of the default
    branch, with the work of the tasks that this one needed.

    `git` and `lock` are fenced: after a successor has taken over, they raise Fenced and start nothing.
    """

    path: Path
    branch: str
    base: str
    git: Git
    lock: WorktreeLock
    source: Merger

    @classmethod
    async def acquire(
        cls, repos: Mirrors, repo: Repo, task: str, epoch: int, needs: Sequence[str] = (), began: str = ""
    ) -> Worktree:
        """Take the task's worktree, ending what an earlier owner left running, and going on with its files.

        A branch that is new begins with the branches `needs`; `began` is where one that is there once began.
        Raises Fenced where a living owner has a later epoch, Busy where it cannot be taken now, ToolError
        where the repository cannot be used.
        """
        name = slug(task)
        path, branch = place(repos, repo, task), PREFIX + name
        lock = WorktreeLock(path.parent, name, epoch)
        notes = await lock.take()
        try:
            # Fetched, since a worker on another machine may have pushed what the task has made so far: just now,
            # where one began it and it is not here.
            there = not notes.get("ready")
            found = await repos.source(repo, fresh=there, newest=there and bool(began))
            source = Merger(found.path, found.sandbox, lock, found.where, found.known)
            _unlock(source, f"refs/heads/{branch}")  # before it is made: a predecessor was killed making it
            base = str(notes.get("base") or await _base(source, repos, repo, branch, needs, began))
            if not (notes.get("ready") and layout(path)):
                await lock.note(base=base)  # before the branch is there: it does not tell what is its own
                await _make(source, path, branch, base)
                await lock.note(ready=True)
            git = Git(path, source.sandbox, lock, known=source.known)
            _unlock(git, "index", "HEAD")
            return cls(path, branch, base, git, lock, source)
        except BaseException:
            await lock.release()
            raise

    async def begun(self, repos: Mirrors, repo: Repo) -> str:
        """The commit of the default branch that the work stands on, which holds no other agent's work."""
        return await self.source.merge_base(await repos.base(repo, self.source), self.base) or self.base

    async def release(self) -> None:
        """End what still runs and give the worktree back; it stays for whoever goes on with the task."""
        await self.lock.release()

    async def remove(self, force: bool = False) -> None:
        """Remove the files and every trace but the branch; ToolError where changes would be lost."""
        if not force and (left := await self.git.status()):
            raise ToolError(
                "the worktree is not removed",
                f"{len(left)} changes in it are not committed",
                "commit them first",
            )
        await self.source.worktree_remove(self.path, force=True)
        await self.lock.release(forget=True)
        with contextlib.suppress(OSError):
            self.path.parent.rmdir()


def place(repos: Mirrors, repo: Repo, task: str) -> Path:
    """Where a task's worktree lies on this home."""
    return repos.home / "worktrees" / slug(repo.name) / slug(task)


async def _base(
    source: Merger, repos: Mirrors, repo: Repo, branch: str, needs: Sequence[str], began: str
) -> str:
    """Where the branch starts: where it left the default branch, if the task has worked on it before."""
    start = await repos.base(repo, source)
    pushed = await source.commit_of(f"refs/remotes/origin/{branch}")
    if pushed and not await source.commit_of(f"refs/heads/{branch}"):
        await source.create_branch(branch, pushed)
    elif pushed and repo.url and await source.forward(branch) == "diverged":
        log.get().warning("What another machine pushed of the task is left aside", branch=branch)
    head = await source.commit_of(f"refs/heads/{branch}")
    if not head:
        return await bases.joined(source, start, needs)
    left = await source.merge_base(start, head) or start
    # Between the two lies the work of others that it was begun on, which is none of its own.
    known = bool(began and await source.commit_of(began))
    beyond = known and await source.contains(head, began) and await source.contains(began, left)
    return began if beyond else left


async def _make(source: Git, path: Path, branch: str, base: str) -> None:
    """Make the worktree; the remains of one that a crash cut off go first, the branch is gone on with."""
    await source.worktree_clear(path)
    await source.worktree_add(path, branch, base)


def _unlock(git: Git, *names: str) -> None:
    """Remove the lock files that a killed git leaves for ever; nobody else uses them while we hold the worktree."""
    if git.where is not None:
        for name in names:
            folder = git.where.common if name.startswith("refs/") else git.where.folder
            (folder / f"{name}.lock").unlink(missing_ok=True)
