"""Merging without a checkout: tried in git's object store first, so that nobody's files are touched by a try."""

from __future__ import annotations

from shared.errors import ToolError
from shared.guard.checkout import Checkout
from shared.guard.git import check_commit, check_ref

_FILES = 200  # files in conflict that are named


class Merger(Checkout):
    """A repository in which branches are merged; nothing is forced, and no change of a person's is lost."""

    async def clash(self, one: str, other: str) -> list[str]:
        """The files in which two commits cannot be merged; [] where they can."""
        return (await self._merged(one, other))[1]

    async def _merged(self, one: str, other: str) -> tuple[str, list[str]]:
        """The tree of a merge, and the files in conflict."""
        for ref in (one, other):
            await self._need_commit(ref)
        words = ("--write-tree", "--name-only", "--no-messages", "-z", check_commit(one), check_commit(other))
        done = await self._git("merge-tree", *words, check=False, errors="surrogateescape")
        tree, *files = done.stdout.split("\0")
        if done.exit_code not in (0, 1) or not tree:
            why = done.stderr.strip()[:400] or "they have no history in common"
            raise ToolError(f"{other!r} cannot be merged", why, "")
        shown = (name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in files if name)
        return tree.strip(), list(shown)[:_FILES] if done.exit_code == 1 else []

    async def unmerged(self, prefix: str, into: str, count: int) -> dict[str, str]:
        """The newest branches below `prefix` that hold something which the commit `into` does not, with their heads."""
        flags = (f"--no-merged={check_commit(into)}", "--sort=-committerdate", f"--count={count}")
        form = "--format=%(refname:lstrip=2) %(objectname)"
        done = await self._git("for-each-ref", form, *flags, f"refs/heads/{check_ref(prefix)}/")
        found = dict(line.split() for line in done.stdout.splitlines())
        self._known |= set(found.values())
        return found

    async def contains(self, ref: str, commit: str) -> bool:
        """Whether the history of `ref` holds that commit."""
        done = await self._git(
            "merge-base", "--is-ancestor", check_commit(commit), check_commit(ref), check=False
        )
        return done.exit_code == 0

    async def join(self, into: str, commit: str, message: str, agent: str) -> str:
        """The id of a merge of `commit` into the commit `into`, which no branch has yet; ToolError for conflicts."""
        tree, files = await self._merged(into, commit)
        if files:
            raise ToolError(f"{commit!r} cannot be merged", f"conflicts in {', '.join(files[:10])}", "")
        who = ("-c", f"user.name=PromptDock {agent}", "-c", f"user.email={agent}@promptdock.invalid")
        parents = ("-p", check_commit(into), "-p", check_commit(commit))
        done = await self._git(
            "commit-tree", *parents, "-F", "-", tree, options=who, stdin=message.encode("utf-8", "replace")
        )
        return done.stdout.strip()

    async def begin_merge(self, commit: str, agent: str) -> None:
        """Merge into the checkout without a commit, with the conflicts marked in its files; ToolError where it cannot.

        The next commit is the merge.
        """
        await self._need_commit(commit)
        await self.need_clean()
        who = ("-c", f"user.name=PromptDock {agent}", "-c", f"user.email={agent}@promptdock.invalid")
        flags = (
            "--quiet",
            "--no-commit",
            "--no-ff",
            "--no-verify",
            "--no-gpg-sign",
            "--no-stat",
            "--no-autostash",
        )
        done = await self._git("merge", *flags, check_commit(commit), options=who, check=False)
        if not await self.merging():
            why = done.stderr.strip()[:400] or done.stdout.strip()[:400]
            raise ToolError(f"{commit[:12]!r} was not merged", why, "")

    async def advance(self, branch: str, old: str, new: str) -> None:
        """Bring a branch from `old` on to `new`, with the files where it is checked out.

        ToolError where it moved meanwhile, and where changes of a person that are not committed are in the way.
        """
        name = check_ref(branch)
        if self.where is not None and self.where.tree and await self.branch() == name:
            if await self.head() != old:
                raise ToolError(f"the branch {branch!r} was changed meanwhile", "", "try again")
            await self._git("merge", "--quiet", "--ff-only", "--no-stat", "--no-autostash", check_commit(new))
            return
        done = await self._git("for-each-ref", "--format=%(worktreepath)", f"refs/heads/{name}")
        if place := done.stdout.strip():
            raise ToolError(f"the branch {branch!r} is checked out elsewhere", place, "merge it there")
        await self._git("update-ref", f"refs/heads/{name}", check_commit(new), old or "0" * 40)
