"""git for tools and tasks: arguments are built and checked here, and nothing of a repository's own is run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.errors import ToolError
from shared.guard.files.git_folder import Layout, layout
from shared.guard.git import heads, leftovers, staging, worktrees
from shared.guard.git.batch import BatchCommand
from shared.guard.git.refs import check_commit, check_ref, check_remote
from shared.guard.git.route import GitRoute, lead
from shared.guard.git.runner import OUTPUT, GitRunner, checked
from shared.guard.sandbox.addresses import PUBLIC, Reach

__all__ = ["STEP", "Commit", "FileChange", "Git", "check_commit", "check_ref", "check_remote"]

STEP = "PromptDock-Step"
PERSON = "person"  # as whom a person's own commands act
_LISTS = 8 * 1024 * 1024  # for lists that are cut by us afterwards, not by bytes
_RECENT = 200  # commits that are searched for a step

# Submodules: looking for changes inside one would run git there, under its configuration.
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=dirty")

# The tree without files, by the length of the repository's ids.
_EMPTY = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}

NAMES = (*_DIFF, "--name-only", "-z")

_STATUS = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")

_UNLISTED = ("-c", "core.excludesFile=/dev/null")  # without our list of what tools leave behind


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


class Git(GitRunner):
    """Every method is a ToolError where git says no, and where an argument or the repository is not safe."""

    # Asking

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
        done = await self._git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", limit=_LISTS)
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
        done = await self._git(*_log(count), span, *_paths(path), limit=_LISTS)
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
        return [FileChange(entry[:2], shown(entry[3:])) for entry in await self._names("status", *_STATUS)]

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

    # Changing

    async def commit_all(
        self, message: str, step: str, agent: str = "agent", written: Collection[str] | None = None
    ) -> str | None:
        """Commit all changes, marked with the id of the step that made them; None where nothing changed.

        A step is committed once: if one of the last commits carries its mark, that commit's id is returned.
        Repositories within this one (submodules too) are left as they are: to look into one would run git
        under a configuration that nobody has checked. New files that hold secrets are never staged. Where
        it is known which files were `written` on purpose, what else lies in folders that tools make is not staged
        either, nor are new binaries. `left_out` names secrets and binaries afterwards.
        """
        if not _is_mark(step) or not re.fullmatch(r"[\w.-]{1,64}", agent, re.ASCII):
            raise ToolError(
                "nothing was committed", f"{step[:100]!a} or {agent[:100]!a} cannot stand in a commit", ""
            )
        done, changed, fresh = await self._before_commit(step)
        if done:
            return done
        paths = [
            path for path in changed if not (self.path / path).is_dir() or (self.path / path).is_symlink()
        ]
        paths = await self._stageable(paths, fresh, written)
        merging = bool(await self.merging())
        if not paths and not merging:
            return None
        text = unmarked(message) or "Work of a step"
        return await self._commit(paths, f"{text}\n\n{STEP}: {step}\n", agent, merging)

    async def _before_commit(self, step: str) -> tuple[str, list[str], set[str]]:
        """The commit among the last ones that has this step's mark; else "", what is not committed, what is new."""
        form = f"--format=%H %(trailers:key={STEP},valueonly,separator=%x2C)"
        ours = ("--cached", "--ignored", f"--exclude-from={leftovers.file()}", "-z")
        log, status, kept = await self._gits(
            BatchCommand(("log", f"-{_RECENT}", form, "HEAD", "--")),
            BatchCommand(("status", *_STATUS), errors="surrogateescape"),
            BatchCommand(("ls-files", *ours, "--"), errors="surrogateescape"),
        )
        if not log.ok and await self.head():
            raise ToolError("the last commits cannot be read", log.stderr.strip()[:400], "")
        for line in log.stdout.splitlines():
            sha, _, found = line.partition(" ")
            if step in found.split(","):
                return sha, [], set()
        entries = [entry for entry in checked(status, "status").stdout.split("\0") if entry]
        if folders := leftovers.kept(checked(kept, "ls-files").stdout.split("\0")):
            entries = [*dict.fromkeys(entries + await self._unignored(folders))]
        return "", [entry[3:] for entry in entries], {entry[3:] for entry in entries if entry[:2] == "??"}

    async def _unignored(self, folders: Sequence[str]) -> list[str]:
        """What is not committed in folders that tools make elsewhere, and of which git has files here."""
        done = await self._git(
            "status", *_STATUS, "--", *folders, options=_UNLISTED, limit=_LISTS, errors="surrogateescape"
        )
        return [entry for entry in done.stdout.split("\0") if entry]

    async def _stageable(
        self, paths: list[str], fresh: set[str], written: Collection[str] | None
    ) -> list[str]:
        """Those that a commit takes; `left_out` names others."""
        paths, secret = await asyncio.to_thread(staging.without_secrets, self.path, paths, fresh)
        binaries: list[str] = []
        new = fresh.intersection(paths).difference(written or ())
        if written is not None and await asyncio.to_thread(leftovers.doubtful, self.path, new):
            done = await self._git("ls-files", "-z", limit=_LISTS, errors="surrogateescape")
            known = [name for name in done.stdout.split("\0") if name]
            paths, binaries = await asyncio.to_thread(staging.without_leftovers, self.path, paths, new, known)
        self.left_out = staging.Left(secret, binaries)
        return paths

    async def _commit(self, paths: list[str], text: str, agent: str, merging: bool) -> str | None:
        """Stage and commit; None where that changes nothing, unless it ends a merge, of which our side was kept."""
        author = await self.identity(agent)
        flags = ("--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim")
        listed = ("--all", "--pathspec-from-file=-", "--pathspec-file-nul")
        # What is ignored by our own list is not among them, but for what git has.
        named = BatchCommand(("add", *listed), _UNLISTED, os.fsencode("\0".join(paths)), then=0)
        steps = [named] if paths else []
        if not merging:
            steps.append(BatchCommand(("diff", "--cached", "--quiet", "--no-ext-diff"), then=1))
        message = text.encode("utf-8", "replace")
        steps.append(BatchCommand(("commit", *flags, "--file=-"), author, message))
        ran = await self._gits(*steps)
        for step, done in zip(steps, ran, strict=False):
            if done.exit_code != (step.then or 0):
                if step.arguments[0] == "diff" and done.ok:
                    return None
                checked(done, step.arguments[0])
        return await self.head()

    async def identity(self, agent: str) -> tuple[str, ...]:
        """Options of git by which a commit is `agent`'s, committed by whom the repository itself names.

        Where it names nobody, the agent is the committer, too. What a `person` commits is all the repository's own.
        """
        done = await self._git("config", "--name-only", "--get-regexp", r"^user\.(name|email)$", check=False)
        own = len(set(done.stdout.split())) == 2
        name, email = f"PromptDock {agent}", f"{agent}@promptdock.invalid"
        roles = ("author", "user") if not own else () if agent == PERSON else ("author",)
        settings = [f"{role}.{part}" for role in roles for part in (f"name={name}", f"email={email}")]
        return tuple(word for setting in settings for word in ("-c", setting))

    async def tidy(self) -> None:
        """Bring the files back to the last commit; what git ignores stays, and so do repositories within."""
        ran = await self._gits(
            BatchCommand(("reset", "--quiet", "--hard"), then=0),
            BatchCommand(("clean", "--quiet", "-d", "--force")),
        )
        for done in ran:
            checked(done, "reset and clean")

    async def create_branch(self, name: str, base: str = "HEAD") -> None:
        """Make a branch at a commit, without checking it out."""
        await self._need_commit(base)
        await self._git("branch", "--no-track", "--", check_ref(name), base)

    async def delete_branch(self, name: str, force: bool = False) -> None:
        """Remove a branch; one that is not merged only with `force`."""
        await self._git("branch", "-D" if force else "-d", "--", check_ref(name))

    async def switch(self, name: str) -> None:
        """Check out a branch that exists; refused where that would lose changes."""
        # Not only for less noise: to list local changes, git would look into inner repositories.
        await self._git("switch", "--quiet", "--no-guess", check_ref(name))

    async def worktree_add(self, path: Path, branch: str, base: str) -> None:
        """Check out `branch` at `path`, made from `base` where it does not exist."""
        name = check_ref(branch)
        await self._forget_missing(path)
        known = await self.commit_of(f"refs/heads/{name}")
        fresh = [] if known else ["--no-track", "-b", name]
        await self._need_commit(base)
        path.parent.mkdir(parents=True, exist_ok=True)
        what = [*fresh, "--", str(path), name if known else base]
        await self._git("worktree", "add", "--quiet", *what, write=[path.parent])

    async def worktree_detach(self, path: Path, commit: str) -> None:
        """Check out a commit at `path` without a branch."""
        await self._need_commit(commit)
        await self._forget_missing(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        await self._git(
            "worktree", "add", "--quiet", "--detach", "--", str(path), commit, write=[path.parent]
        )

    async def _forget_missing(self, path: Path) -> None:
        if self.where is not None:
            async with self._held():
                worktrees.forget(path, self.where)

    async def worktree_remove(self, path: Path, force: bool = False) -> None:
        """Remove a worktree's files and its entry; with changes that are not committed only with `force`."""
        if self.where is None or not worktrees.belongs(path, self.where):
            raise ToolError(f"{path.name!r} is no worktree of this repository", "", "")
        if not force and (left := await Git(path, self.sandbox, self.lock).status()):
            raise ToolError(f"{path.name!r} is not removed", f"{len(left)} changes are not committed", "")
        async with self._held():
            aside = worktrees.part(path, self.where)
        await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)

    async def worktree_clear(self, path: Path) -> None:
        """Remove what lies at the place of a worktree, also where a crash left files that git knows nothing of."""
        if worktrees.belongs(path, self.where):
            await self.worktree_remove(path, force=True)
        else:
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)

    async def init(self, branch: str = "main") -> None:
        """Make a repository at `path`, without anybody's templates."""
        self.path.mkdir(parents=True, exist_ok=True)
        await self._raw(
            "init", "--quiet", "--template=", f"--initial-branch={check_ref(branch)}", str(self.path)
        )
        self.where = layout(self.path)

    # Other places

    async def mirror(self, url: str, reach: Reach = PUBLIC) -> None:
        """Make `path` a bare repository of what `url` has; its branches are under `refs/remotes/origin`.

        So our own branches, under `refs/heads`, are never overwritten by a fetch.
        """
        way = await lead([url], reach)
        if self.where is None:
            self.path.mkdir(parents=True, exist_ok=True)
            await self._raw(
                "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(self.path)
            )
            self.where = layout(self.path)
        entries = {"remote.origin.url": url, "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*"}
        for key, value in entries.items():
            await self._raw("config", "--file", str(self.path / "config"), "--replace-all", key, value)
        await self.fetch(way=way)

    async def fetch(self, remote: str = "origin", reach: Reach = PUBLIC, way: GitRoute | None = None) -> None:
        """Bring the remote's branches here, and learn which one is its default. `way`: it was looked up before."""
        way = way or await lead(await self._urls(remote, reach), reach)
        arguments = (
            "fetch",
            "--quiet",
            "--prune",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
        )
        await self._git(*arguments, check_ref(remote), way=way)
        await self._git("remote", "set-head", check_ref(remote), "--auto", way=way, check=False)

    async def can_push(self, branch: str, remote: str = "origin", reach: Reach = PUBLIC) -> None:
        """ToolError for a push that must fail, as far as that can be known without the network, names included."""
        await self._urls(remote, reach, push=True)
        if not await self.commit_of(f"refs/heads/{check_ref(branch)}"):
            raise ToolError(f"there is no branch {branch!r}", "", "look at git_log, or make it first")

    async def push(
        self,
        branch: str,
        remote: str = "origin",
        reach: Reach = PUBLIC,
        commit: str = "",
        address: str = "",
    ) -> None:
        """Send a branch under its own name; never by force. `commit` of it, and to `address`, where they are given."""
        await self.can_push(branch, remote, reach)
        if address and address != await self.push_address(remote):
            raise ToolError(
                "nothing was pushed", f"{remote} does not lead to {address} any more", "ask again"
            )
        way = await lead(await self._urls(remote, reach, push=True), reach)
        spec = f"{commit or f'refs/heads/{check_ref(branch)}'}:refs/heads/{check_ref(branch)}"
        arguments = ("push", "--quiet", "--no-verify", "--no-signed", "--no-recurse-submodules")
        await self._git(*arguments, check_ref(remote), spec, way=way)

    async def remote_url(self, remote: str = "origin") -> str:
        """The remote's address; "" where there is none of that name."""
        done = await self._git("config", "--get", f"remote.{check_ref(remote)}.url", check=False)
        return done.stdout.strip()

    async def fetch_address(self, remote: str = "origin") -> str:
        """Where a fetch really goes; ToolError where there is no such remote."""
        return (await self._led(remote))[0]

    async def push_address(self, remote: str = "origin") -> str:
        """Where a push really goes; ToolError where there is no such remote."""
        return " and ".join(await self._led(remote, push=True))

    async def _led(self, remote: str, push: bool = False) -> list[str]:
        """The addresses that git itself takes for a remote."""
        which = ("--push", "--all") if push else ("--all",)
        done = await self._git("remote", "get-url", *which, check_ref(remote), check=False)
        found = [url for url in done.stdout.split("\n") if url] if done.ok else []
        if not found:
            raise ToolError(f"there is no remote called {remote!r}", "", "ask the person to add one")
        return found

    async def _urls(self, remote: str, reach: Reach, push: bool = False) -> list[str]:
        """The same, each checked by its text."""
        return [check_remote(url, reach) for url in await self._led(remote, push)]

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
        done = await self._git(*arguments, limit=_LISTS, errors="surrogateescape")
        if done.truncated:
            raise ToolError("there are too many changes to list", "", "let git ignore what is generated")
        return [name for name in done.stdout.split("\0") if name]

    async def _text(self, *arguments: str, limit: int = OUTPUT) -> str:
        return (await self._git(*arguments, limit=limit)).stdout


def unmarked(message: str) -> str:
    """A message without marks of steps: one within the text would be taken for one of ours."""
    return re.sub(rf"(?im)^\s*{STEP}\s*:.*$", "", message).strip()


def _amount(commits: int, stat: str) -> str:
    """`2 commits: 3 files changed, 10 insertions(+)`."""
    counted = f"{commits} commit{'' if commits == 1 else 's'}"
    return f"{counted}: {stat.strip()}" if stat.strip() else counted


def _log(count: int) -> tuple[str, ...]:
    return ("log", f"-{max(1, min(count, 1000))}", "--format=%H%x1f%an <%ae>%x1f%aI%x1f%s%x1e")


def _commits(text: str) -> list[Commit]:
    fields = (entry.strip("\n").split("\x1f") for entry in text.split("\x1e"))
    return [Commit(*entry) for entry in fields if len(entry) == 4]


def _is_mark(step: str) -> bool:
    """Whether it reads the same from a trailer as it was written; several are read with a comma between."""
    return 0 < len(step) <= 200 and step.isprintable() and step == step.strip() and "," not in step


def shown(name: str) -> str:
    """A name as text, with escapes for bytes that are no UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _paths(path: str) -> list[str]:
    if "\0" in path:
        raise ToolError(f"{path!r} cannot be used", "a path holds no NUL", "")
    return ["--", path] if path else ["--"]
