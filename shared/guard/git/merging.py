"""Merging without a checkout: tried in git's object store first, so that nobody's files are touched by a try."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shared import log
from shared.errors import ToolError
from shared.guard.git.batch import BatchCommand
from shared.guard.git.checkout import Checkout
from shared.guard.git.commands import PERSON, check_commit, check_ref, unmarked
from shared.guard.git.history import NAMES, shown
from shared.guard.git.runner import checked
from shared.guard.processes.process import Finished

_FILES = 200  # files in conflict that are named
_NAMED = 10  # files in the way that an error names
# As git lists them, one a line behind a tab, or in a sentence of its own.
_IN_THE_WAY = re.compile(r"^\t(.+)$|^error: Entry '(.+)' not uptodate", re.MULTILINE)


@dataclass(frozen=True)
class Trial:
    """What a merge comes to: in the object store alone, so that it may be thrown away, or made as it is."""

    base: str  # where the two histories part
    tree: str  # the files of the merge, as git keeps them
    clashes: list[str]  # files in conflict: where there are any, the tree is none to commit
    changed: list[str]  # files that the merge brings in


class Merger(Checkout):
    """A repository in which branches are merged; nothing is forced, and no change of a person's is lost."""

    async def trial(self, into: str, commit: str) -> Trial:
        """What a merge of `commit` into the commit `into` would come to; ToolError where they share no history."""
        for ref in (into, commit):
            await self._need_commit(ref)
        base, tried, changed = await self._gits(
            BatchCommand(("merge-base", into, commit)),
            _merge_tree(into, commit),
            # Without a base there is no merge either.
            BatchCommand(("diff", *NAMES, f"{into}...{commit}", "--"), errors="surrogateescape"),
        )
        tree, clashes = _merged(tried, commit)
        files = checked(changed, "diff").stdout.split("\0")
        return Trial(base.stdout.strip(), tree, clashes, sorted({shown(name) for name in files if name}))

    async def clashes_with(self, commit: str, others: Sequence[str]) -> list[list[str]]:
        """For each of the other commits, the files in which it cannot be merged with `commit`; [] where it can be.

        Of one without a common history nothing can be said, and nothing is.
        """
        if not others:
            return []
        for ref in (commit, *others):
            await self._need_commit(ref)
        ran = await self._gits(*(_merge_tree(other, commit) for other in others))
        return [_merged(done, commit)[1] if done.exit_code == 1 else [] for done in ran]

    async def unmerged(self, prefix: str, into: str, count: int) -> dict[str, str]:
        """The newest branches below `prefix` that hold something which the commit `into` does not, with their heads."""
        flags = (f"--no-merged={check_commit(into)}", "--sort=-committerdate", f"--count={count}")
        form = "--format=%(refname:lstrip=2) %(objectname)"
        done = await self._git("for-each-ref", form, *flags, f"refs/heads/{check_ref(prefix)}/")
        found = dict(line.split() for line in done.stdout.splitlines())
        self.known |= set(found.values())
        return found

    async def contains(self, ref: str, commit: str) -> bool:
        """Whether the history of `ref` holds that commit."""
        done = await self._git(
            "merge-base", "--is-ancestor", check_commit(commit), check_commit(ref), check=False
        )
        return done.exit_code == 0

    async def join(self, into: str, commit: str, tree: str, message: str, agent: str) -> str:
        """The id of a merge of `commit` into the commit `into`, which no branch has yet; `tree` a trial made."""
        return await self._made([into, commit], tree, message, agent)

    async def parents(self, commit: str) -> list[str]:
        """The commits that a commit follows; a merge has two."""
        await self._need_commit(commit)
        done = await self._git("rev-list", "--parents", "--max-count=1", check_commit(commit), "--")
        return done.stdout.split()[1:]

    async def without(self, head: str, commit: str, before: str) -> Trial:
        """What `head` comes to without what `commit` in its history brought to the commit `before`; see `undo`."""
        # Follows `commit`, so that this is where the two part, and holds what was before it.
        back = await self._made([commit], f"{check_commit(before)}^{{tree}}", "As before\n", PERSON)
        return await self.trial(head, back)

    async def undo(self, head: str, tree: str, message: str, agent: str) -> str:
        """The id of a commit that follows `head` with a `tree` that `without` made; no branch has it yet."""
        return await self._made([head], tree, message, agent)

    async def holders(self, commit: str) -> list[str]:
        """The full names of all branches, tags and remote branches whose history holds a commit."""
        done = await self._git("for-each-ref", "--format=%(refname)", f"--contains={check_commit(commit)}")
        return done.stdout.split()

    async def retreat(self, branch: str, old: str, new: str) -> None:
        """Bring a branch from `old` back to `new`; ToolError where it moved, or a person's changes are in the way."""
        name = check_ref(branch)
        if self.where is not None and self.where.tree and await self.branch() == name:
            if await self.head() != old:
                raise ToolError(f"the branch {branch!r} was changed meanwhile", "", "try again")
            # A file that was only saved again would count as a person's change.
            await self._git("update-index", "-q", "--refresh", check=False)
            await self._bring(branch, "reset", "--quiet", "--keep", check_commit(new))
            return
        await self._git("update-ref", f"refs/heads/{name}", check_commit(new), old)

    async def _made(self, parents: Sequence[str], tree: str, message: str, agent: str) -> str:
        who = await self.identity(agent)
        before = [word for parent in parents for word in ("-p", check_commit(parent))]
        text = f"{unmarked(message)}\n".encode("utf-8", "replace")
        done = await self._git("commit-tree", *before, "-F", "-", tree, options=who, stdin=text)
        self.known.add(made := done.stdout.strip())
        return made

    async def begin_merge(self, commit: str, agent: str) -> None:
        """Merge into the checkout without a commit, with the conflicts marked in its files; ToolError where it cannot.

        The next commit is the merge.
        """
        await self._need_commit(commit)
        await self.need_clean()
        who = await self.identity(agent)
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
            flags = ("--quiet", "--ff-only", "--no-stat", "--no-autostash")
            await self._bring(branch, "merge", *flags, check_commit(new))
            return
        done = await self._git("for-each-ref", "--format=%(worktreepath)", f"refs/heads/{name}")
        if place := done.stdout.strip():
            raise ToolError(f"the branch {branch!r} is checked out elsewhere", place, "merge it there")
        await self._git("update-ref", f"refs/heads/{name}", check_commit(new), old or "0" * 40)

    async def _bring(self, branch: str, *words: str) -> None:
        """Move the branch that is checked out, with its files; ToolError that names those which are in the way."""
        done = await self._git(*words, check=False)
        files = [
            shown(name) for found in _IN_THE_WAY.finditer(done.stderr) for name in found.groups() if name
        ]
        if done.exit_code == 0 or done.timed_out or not files:
            checked(done, words[0])
            return
        log.get().warning("git left a checkout as it is", branch=branch, path=str(self.path), git=done.stderr)
        raise ToolError(
            f"the branch {branch!r} stays as it is",
            f"files in {self.path} have changes that no commit has, and would be overwritten: "
            f"{', '.join(dict.fromkeys(files[:_NAMED]))}" + (" and more" if len(files) > _NAMED else ""),
            "commit them, or put them aside with git stash --include-untracked, then try again",
        )


def _merge_tree(one: str, other: str) -> BatchCommand:
    words = ("--write-tree", "--name-only", "--no-messages", "-z", check_commit(one), check_commit(other))
    return BatchCommand(("merge-tree", *words), errors="surrogateescape")


def _merged(done: Finished, commit: str) -> tuple[str, list[str]]:
    """The tree of a merge, and the files in conflict."""
    tree, *files = done.stdout.split("\0")
    if done.exit_code not in (0, 1) or not tree:
        why = done.stderr.strip()[:400] or "they have no history in common"
        raise ToolError(f"{commit!r} cannot be merged", why, "")
    return tree.strip(), [shown(name) for name in files if name][:_FILES] if done.exit_code == 1 else []
