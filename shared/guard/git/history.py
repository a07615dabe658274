"""What git knows of a repository: its history, branches and changes. Nothing here changes any of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from shared.errors import ToolError
from shared.guard.files.git_folder import Layout
from shared.guard.git import heads
from shared.guard.git.batch import BatchCommand
from shared.guard.git.refs import check_commit, check_ref
from shared.guard.git.runner import OUTPUT, GitRunner, checked

LISTS = 8 * 1024 * 1024  # for lists that are cut by us afterwards, not by bytes

# Submodules: looking for changes inside one would run git there, under its configuration.
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=dirty")

# The tree without files, by the length of the repository's ids.
_EMPTY = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}

NAMES = (*_DIFF, "--name-only", "-z")

STATUS = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")


@dataclass(frozen=True)
class Commit:
    """One commit; `when` is ISO 8601 with the author's own offset."""

    sha: str
    author: str
    when: str
    subject: str


@dataclass(frozen=True)
class FileChange:
    """A path and what happened to it, as git's two letters of `status --porcelain` say it."""

    code: str
    path: str


class GitHistory(GitRunner):
    """Every method is a ToolError where git says no, and where an argument or the repository is not safe."""

    async def head(self) -> str:
        """The id of the commit that is checked out; "" where there is none yet."""
        return await self.commit_of("HEAD")

    async def commit_of(self, name: str) -> str:
        """The commit id that a branch, tag or id means; "" for one that does not exist."""
        if name in self.known:
            return name
        if (found := await self._stands(heads.commit, check_commit(name))) is not None:
            self.known |= {found} - {""}
            return found
        done = await self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
        if not done.ok:
            return ""
        self.known.add(found := done.stdout.strip())
        return found

    async def _stands(self, read: Callable[[Layout, str], str | None], name: str) -> str | None:
        """What git's own files say of a name; None where git must be asked. A successor's are not looked at."""
        async with self._held():
            return read(await self._trusted(), name)

    async def branch(self) -> str:
        """The branch that is checked out; "" where HEAD is detached."""
        if (found := await self._stands(heads.target, "HEAD")) is not None:
            return found.removeprefix("refs/heads/")
        done = await self._git("symbolic-ref", "--short", "-q", "HEAD", check=False)
        return done.stdout.strip() if done.ok else ""

    async def merging(self) -> str:
        """The commit that is being merged into the branch that is checked out; "" where none is."""
        return await self.commit_of("MERGE_HEAD")

    async def branches(self) -> list[str]:
        """The names of all local branches."""
        done = await self._git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", limit=LISTS)
        return done.stdout.split()

    async def unpushed_branches(self) -> list[str]:
        """The local branches that have commits which no remote branch has."""
        left = []
        for name in await self.branches():
            span = (f"refs/heads/{check_ref(name)}", "--not", "--remotes", "--")
            done = await self._git("rev-list", "--max-count=1", *span)
            left += [name] if done.stdout.strip() else []
        return left

    async def log(self, count: int = 20, path: str = "", since: str = "", ref: str = "HEAD") -> list[Commit]:
        """The newest commits first: of `path` alone, and after the commit `since`, where they are given."""
        await self._need_commit(ref)
        span = f"{check_commit(since)}..{check_commit(ref)}" if since else check_commit(ref)
        done = await self._git(*_log(count), span, *_paths(path), limit=LISTS)
        return _commits(done.stdout)

    async def show(self, commit: str = "HEAD", path: str = "", limit: int = OUTPUT) -> str:
        """One commit with its message and diff."""
        await self._need_commit(commit)
        return await self._text(
            "show", *_DIFF, "--format=fuller", "--stat", "--patch", commit, *_paths(path), limit=limit
        )

    async def file(self, commit: str, path: str, limit: int = OUTPUT) -> str:
        """A file's text as it was at a commit."""
        await self._need_commit(commit)
        return await self._text("cat-file", "blob", f"{commit}:{path}", limit=limit)

    async def diff(self, base: str = "HEAD", path: str = "", to: str = "", limit: int = OUTPUT) -> str:
        """What the files, or the commit `to`, changed since `base`; untracked files are not in it."""
        return await self._text("diff", *_DIFF, *await self._span(base, to), *_paths(path), limit=limit)

    async def diff_stat(self, base: str = "HEAD", to: str = "") -> str:
        """The same as a summary: files, lines added and removed."""
        return await self._text("diff", *_DIFF, "--stat=100", *await self._span(base, to))

    async def changed_files(self, base: str = "HEAD", to: str = "") -> list[str]:
        """Paths that differ from `base`; without `to` also untracked ones, ignored ones never."""
        found = await self._names("diff", *NAMES, *await self._span(base, to), "--")
        if not to and self.where and self.where.tree:
            found += await self._names("ls-files", "--others", "--exclude-standard", "-z")
        return sorted({shown(name) for name in found})

    async def work(self, base: str, to: str, count: int) -> tuple[list[Commit], list[str], str]:
        """What `to` holds above the commit `base`: its newest commits, the files they changed, a summary of that."""
        await self._span(base, to)
        ran = await self._gits(
            BatchCommand((*_log(count), f"{base}..{to}", "--"), then=0),
            BatchCommand(("diff", *NAMES, base, to, "--"), then=0, errors="surrogateescape"),
            BatchCommand(("diff", *_DIFF, "--stat=100", base, to, "--")),
        )
        commits, names, stat = [checked(done, "log and diff").stdout for done in ran]
        return _commits(commits), sorted({shown(name) for name in names.split("\0") if name}), stat[:OUTPUT]

    async def status(self) -> list[FileChange]:
        """What is not committed."""
        return [FileChange(entry[:2], shown(entry[3:])) for entry in await self._names("status", *STATUS)]

    async def blame(self, path: str, first: int, last: int, commit: str = "HEAD", limit: int = OUTPUT) -> str:
        """Who wrote lines `first` to `last` of a file."""
        await self._need_commit(commit)
        span = f"-L{max(1, first)},{max(first, last, 1)}"
        return await self._text("blame", "--date=short", span, commit, *_paths(path), limit=limit)

    async def held(self) -> list[str]:
        """The names of all files that are tracked, or not ignored; bytes come back as `os.fsencode` makes them."""
        found = await self._names("ls-files", "--cached", "--others", "--exclude-standard", "-z")
        return sorted(set(found))

    async def outgoing(self, branch: str, remote: str = "origin") -> tuple[str, str]:
        """The commit that a push of a branch would send, and in words what of it the remote has not yet."""
        known = await self.commit_of(f"refs/remotes/{check_ref(remote)}/{check_ref(branch)}")
        head = await self.commit_of(f"refs/heads/{branch}") or known
        if not head:
            raise ToolError(f"there is no branch {branch!r}", "", "look at git_log, or make it first")
        default = await self.default_branch()
        known = known or (default and await self.commit_of(f"refs/remotes/{remote}/{default}")) or ""
        count, stat = await self._gits(
            BatchCommand(("rev-list", "--count", head, "--not", f"--remotes={remote}", "--")),
            BatchCommand(("diff", *_DIFF, "--shortstat", known or _EMPTY[len(head)], head, "--")),
        )
        return head, _amount(int(checked(count, "rev-list").stdout), checked(stat, "diff").stdout)

    async def amount(self, base: str, to: str) -> str:
        """What `to` holds above `base`, in words: commits, files, lines."""
        await self._span(base, to)
        count, stat = await self._gits(
            BatchCommand(("rev-list", "--count", f"{base}..{to}", "--")),
            BatchCommand(("diff", *_DIFF, "--shortstat", f"{base}...{to}", "--")),
        )
        return _amount(int(checked(count, "rev-list").stdout), checked(stat, "diff").stdout)

    async def default_branch(self) -> str:
        """The remote's default branch as far as it is known, else the branch that is checked out."""
        if (found := await self._stands(heads.target, "refs/remotes/origin/HEAD")) is not None:
            return found.removeprefix("refs/remotes/origin/") or await self.branch()
        done = await self._git("symbolic-ref", "--short", "-q", "refs/remotes/origin/HEAD", check=False)
        return done.stdout.strip().partition("/")[2] if done.ok else await self.branch()

    async def _need_commit(self, name: str) -> None:
        # Only whole ids are known: they stay what they are, and a name does not.
        if name not in self.known and not await self.commit_of(name):
            raise ToolError(f"there is no commit {name!r}", "", "look at git_log for those that there are")

    async def _span(self, base: str, to: str) -> list[str]:
        await self._need_commit(base)
        if to:
            await self._need_commit(to)
        return [base, to] if to else [base]

    async def _names(self, *arguments: str) -> list[str]:
        """What a command lists, with NUL between; a name's bytes come back as `os.fsencode` makes them."""
        done = await self._git(*arguments, limit=LISTS, errors="surrogateescape")
        if done.truncated:
            raise ToolError("there are too many changes to list", "", "let git ignore what is generated")
        return [name for name in done.stdout.split("\0") if name]

    async def _text(self, *arguments: str, limit: int = OUTPUT) -> str:
        return (await self._git(*arguments, limit=limit)).stdout


def _amount(commits: int, stat: str) -> str:
    """`2 commits: 3 files changed, 10 insertions(+)`."""
    counted = f"{commits} commit{'' if commits == 1 else 's'}"
    return f"{counted}: {stat.strip()}" if stat.strip() else counted


def _log(count: int) -> tuple[str, ...]:
    return ("log", f"-{max(1, min(count, 1000))}", "--format=%H%x1f%an <%ae>%x1f%aI%x1f%s%x1e")


def _commits(text: str) -> list[Commit]:
    fields = (entry.strip("\n").split("\x1f") for entry in text.split("\x1e"))
    return [Commit(*entry) for entry in fields if len(entry) == 4]


def shown(name: str) -> str:
    """A name as text, with escapes for bytes that are no UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _paths(path: str) -> list[str]:
    if "\0" in path:
        raise ToolError(f"{path!r} cannot be used", "a path holds no NUL", "")
    return ["--", path] if path else ["--"]
