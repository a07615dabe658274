"""git for tools and tasks: arguments are built and checked here, and nothing of a repository's own is run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from shared.errors import ToolError
from shared.guard.files.git_folder import layout
from shared.guard.git import leftovers, staging, worktrees
from shared.guard.git.batch import BatchCommand
from shared.guard.git.history import LISTS, STATUS, Commit, FileChange
from shared.guard.git.refs import check_commit, check_ref, check_remote
from shared.guard.git.remotes import GitRemotes
from shared.guard.git.runner import checked

__all__ = ["STEP", "Commit", "FileChange", "Git", "check_commit", "check_ref", "check_remote"]

STEP = "PromptDock-Step"
PERSON = "person"  # as whom a person's own commands act
_RECENT = 200  # commits that are searched for a step

_UNLISTED = ("-c", "core.excludesFile=/dev/null")  # without our list of what tools leave behind


class Git(GitRemotes):
    """All that is done with git: what changes a repository stands here, the rest in what it is built on."""

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
            BatchCommand(("status", *STATUS), errors="surrogateescape"),
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
            "status", *STATUS, "--", *folders, options=_UNLISTED, limit=LISTS, errors="surrogateescape"
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
            done = await self._git("ls-files", "-z", limit=LISTS, errors="surrogateescape")
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


def unmarked(message: str) -> str:
    """A message without marks of steps: one within the text would be taken for one of ours."""
    return re.sub(rf"(?im)^\s*{STEP}\s*:.*$", "", message).strip()


def _is_mark(step: str) -> bool:
    """Whether it reads the same from a trailer as it was written; several are read with a comma between."""
    return 0 < len(step) <= 200 and step.isprintable() and step == step.strip() and "," not in step
