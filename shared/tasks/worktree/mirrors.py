"""Repositories: linked by path on one home, or mirrored from a url; and what readers may read of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from shared import log
from shared.errors import ConfigurationError, Lasting, ToolError, UsageError
from shared.guard.files import lock as flock
from shared.guard.files import roots
from shared.guard.git.commands import Git, check_remote
from shared.guard.sandbox.addresses import Reach
from shared.guard.sandbox.sandbox import Sandbox
from shared.store.records import Repo, RepoKind, derived
from shared.tasks.names import slug

_FRESH = 60.0  # seconds that a fetch counts as fresh
_READERS = 3600.0  # seconds that a checkout of an older commit is kept for whoever reads in it
_WAIT = 300.0  # seconds that another process's fetch of the same mirror may take


@dataclass(frozen=True)
class Mirrors:
    """The repositories as they lie on this home. Rows are made and read here, never stored.

    `allow_local` lets urls name paths and servers of this machine; `hosts` may lie in a private network.
    """

    home: Path
    home_id: str
    sandbox: Sandbox
    allow_local: bool = False
    hosts: frozenset[str] = frozenset()

    @property
    def reach(self) -> Reach:
        """How far urls may lead."""
        return Reach(self.hosts, self.allow_local)

    async def add(
        self, place: str, project: UUID, name: str = "", kind: RepoKind = "both", push_tasks: bool = False
    ) -> Repo:
        """The row of a new repository: `place` is a folder here, which stays where it is, or a url.

        Raises UsageError where there is no repository or no commit in it, ToolError where git cannot reach or trust it.
        """
        if is_url(place):
            return await self._add_url(place, project, name, kind, push_tasks)
        path = _top(place, self.home)
        id = derived("repo", str(project), name or path.name, str(path), self.home_id)
        git = Git(path, self.sandbox)
        branch = await git.default_branch() or "main"
        if not await git.commit_of(branch):
            branch = await git.branch() or branch
        if not await git.commit_of(f"refs/heads/{branch}") and not await git.head():
            make = f"git -C {shlex.quote(str(path))}"
            raise _empty(str(path), f"{make} add -A && {make} commit --allow-empty -m Start")
        return Repo(
            id=id, project_id=project, name=name or path.name, kind=kind, path=str(path), home=self.home_id,
            default_branch=branch, push_tasks=push_tasks,
        )  # fmt: skip

    async def _add_url(self, url: str, project: UUID, name: str, kind: RepoKind, push_tasks: bool) -> Repo:
        check_remote(url, self.reach)
        guess = re.sub(r"\.git$", "", re.split(r"[/:]", url.rstrip("/"))[-1])
        # By its url: one that gets the name of another that was removed finds no mirror of that.
        id = derived("repo", str(project), name or guess, url)
        repo = Repo(id=id, project_id=project, name=name or guess, kind=kind, url=url, push_tasks=push_tasks)
        there = self._mirror(repo).path.exists()
        try:
            git = await self.source(repo)
            branch = await git.default_branch() or "main"
            if not await git.commit_of(f"refs/remotes/origin/{branch}"):
                raise _empty(url, "push one")
        except BaseException:
            if not there:  # nobody has it, so that nothing of it stays
                await self.forget(repo)
            raise
        return repo.model_copy(update={"default_branch": branch})

    def here(self, repo: Repo) -> Git | None:
        """The repository as it lies on this machine, without a look at where it came from; None where it does not."""
        if repo.path:
            return self._linked(repo)
        git = self._mirror(repo)
        return git if git.is_repo() else None

    def mirror(self, repo: Repo) -> Git | None:
        """Our mirror of a repository, where there is one here."""
        git = self._mirror(repo)
        return git if repo.url and not repo.path and git.is_repo() else None

    async def forget(self, repo: Repo) -> None:
        """Remove what lies here of a repository that is in no project any more; a linked folder is a person's."""
        if repo.path:
            return
        path = self._mirror(repo).path
        async with _alone(path) as lock:
            for folder in (self.home / "reading" / path.stem, path):
                await asyncio.to_thread(shutil.rmtree, folder, True)
            lock.unlink(missing_ok=True)

    def _mirror(self, repo: Repo) -> Git:
        return Git(self.home / "mirrors" / f"{slug(repo.name)}-{repo.id.hex[-8:]}.git", self.sandbox)

    async def source(self, repo: Repo, fresh: bool = False, newest: bool = False) -> Git:
        """Where task branches are made: the linked repository, or our mirror, fetched if `fresh`.

        What was fetched within the last minute counts as fresh, except to who needs the `newest`.
        """
        if repo.path:
            return self._linked(repo)
        if not repo.url:
            raise ConfigurationError(
                f"the repository {repo.name!r} has neither a path nor a url", "", "add it again"
            )
        git = self._mirror(repo)
        async with _alone(git.path):
            # Made by another process while we waited, or cut off in the middle by a crash.
            git = Git(git.path, self.sandbox)
            if not git.is_repo() or not await git.remote_url():
                await git.mirror(repo.url, self.reach)
            elif newest or (fresh and _age(git.path / "FETCH_HEAD") > _FRESH):
                await self._refresh(git, repo)
        return git

    async def _refresh(self, git: Git, repo: Repo) -> None:
        try:
            await git.fetch(reach=self.reach)
        except ToolError as error:
            # What was fetched before can still be read, and its commit is cited.
            if not await git.commit_of(f"refs/remotes/origin/{repo.default_branch}"):
                raise
            log.get().warning("a mirror could not be fetched", repo=repo.name, why=error.why)

    def _linked(self, repo: Repo) -> Git:
        if repo.home and repo.home != self.home_id:
            raise ToolError(
                f"the repository {repo.name!r} lies on another machine",
                f"home {repo.home}, in {repo.path}",
                "do it on that machine, or register the repository by its url: then every machine has it",
            )
        git = Git(roots.opened(repo.name, repo.path or "", self.home), self.sandbox)
        if not git.is_repo():
            raise Lasting(
                f"the repository {repo.name!r} is gone",
                f"{repo.path} is no git repository any more",
                "bring it back, or register where it is now: promptdock repo add PATH",
            )
        return git

    async def base(self, repo: Repo, git: Git | None = None) -> str:
        """The commit that new task branches start from: the default branch's. `git` is its `source`, if at hand."""
        git = git or await self.source(repo)
        names = [f"refs/heads/{repo.default_branch}", "HEAD"] if repo.path else []
        for name in [*names, f"refs/remotes/origin/{repo.default_branch}"]:
            if commit := await git.commit_of(name):
                return commit
        raise Lasting(
            f"the repository {repo.name!r} has no commit",
            f"work begins from a commit of {repo.default_branch!r}",
            f"make one in {repo.path or repo.url}, then try again",
        )

    async def read_root(self, repo: Repo) -> tuple[Path, str]:
        """Where readers read, and the commit that they cite.

        A linked repository is read as it lies there, and its HEAD is cited. Of a mirror, a checkout is made
        for each commit of the default branch, so that nothing moves under a reader.
        """
        git = await self.source(repo, fresh=True)
        if repo.path:
            return git.path, await git.head()
        commit = await self.base(repo)
        folder = self.home / "reading" / git.path.stem
        path, ready = folder / commit[:16], folder / f"{commit[:16]}.ready"
        async with _alone(path):
            if not ready.exists():
                await git.worktree_clear(path)  # cut off in the middle of its checkout
                await git.worktree_detach(path, commit)
            ready.touch()
            await self._forget(git, folder, ready)
        return path, commit

    async def _forget(self, git: Git, folder: Path, kept: Path) -> None:
        """Remove the checkouts of older commits that nobody has asked for in a while."""
        for ready in _unread(folder, kept):
            await git.worktree_clear(ready.with_suffix(""))
            ready.unlink(missing_ok=True)


@contextlib.asynccontextmanager
async def _alone(path: Path) -> AsyncIterator[Path]:
    """One process at a time makes or fetches what lies at `path`; the file that is its lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    fd = await flock.acquire(lock, _WAIT)
    try:
        yield lock
    finally:
        os.close(fd)


def _age(file: Path) -> float:
    """Seconds since it was last changed; one that is not there is very old."""
    try:
        return time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _unread(folder: Path, kept: Path) -> list[Path]:
    return [ready for ready in folder.glob("*.ready") if ready != kept and _age(ready) > _READERS]


def _empty(place: str, make: str) -> UsageError:
    return UsageError(
        f"{place} has no commit yet",
        "every task begins from a commit",
        f"make a first one ({make}), then add it again",
    )


def is_url(place: str) -> bool:
    return "://" in place or "::" in place or bool(re.match(r"[^/\s]+@[^/\s]+:", place))


def _top(place: str, home: Path) -> Path:
    """The folder, which must be a checkout itself; one that can be no root is refused as that, checkout or not."""
    path = Path(place).expanduser()
    if not path.is_dir():
        raise UsageError(
            f"{str(path)!r} is no folder here", "", "give the path of a git repository, or its url"
        )
    path = roots.check(path, home)
    if (path / ".git").exists():
        return path
    if above := next((folder for folder in path.parents if (folder / ".git").exists()), None):
        raise UsageError(
            f"{str(path)!r} lies in the repository {above}",
            "a folder in a repository would open the whole of it",
            f"give the repository itself, if you mean it: {above}",
        )
    if (path / "HEAD").is_file() and (path / "objects").is_dir():
        raise UsageError(
            f"{str(path)!r} is a bare repository",
            "a registered folder is one that people work in",
            "clone it (git clone), and give the clone",
        )
    raise UsageError(f"{str(path)!r} is no git repository", "", "run git init there, or give another path")
