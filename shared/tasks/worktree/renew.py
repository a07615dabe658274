"""A task's branch brought up to date where it clashes with the default branch, which moved on meanwhile.

What the default branch has now is merged into the task's worktree, and not committed: the conflicts stand in the
files, marked, for the task's agent to resolve. Its next commit is the merge.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from shared.errors import ToolError
from shared.guard.git.merging import Merger
from shared.store.records import Repo
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.mirrors import Mirrors

_MARK = re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE)
_SHOWN, _READ = 50, 8 * 1024 * 1024
# What git's two letters say of a file in conflict: first our side, the task's branch.
_KINDS = {
    "UU": "both changed it",
    "AA": "both added it",
    "UD": "you changed it, {into} removed it: it is there as you made it",
    "DU": "you removed it, {into} changed it: it is there as {into} has it",
    "AU": "added by you, moved there by {into}",
    "UA": "added by {into}, moved there by you",
}


@dataclass(frozen=True)
class Renewal:
    """A merge that is under way in a worktree: of the commit `commit` of the branch `into`."""

    commit: str
    into: str
    files: dict[str, str] = field(default_factory=dict)  # path -> what the two sides did with it

    def marked(self, tree: Path) -> list[str]:
        """The files in which marks of the conflict still stand."""
        return [name for name in self.files if _is_marked(tree / name)]

    def told(self, tree: Path) -> str:
        """What the agent is told."""
        marked = self.marked(tree)
        lines = []
        for name, kind in list(self.files.items())[:_SHOWN]:
            how = "" if name in marked or "{into}" in kind else "; it has no marks, and is as on your branch"
            lines.append(f"- {name}: {kind.replace('{into}', self.into)}{how}")
        more = f"\n- and {len(self.files) - _SHOWN} more" if len(self.files) > _SHOWN else ""
        return (
            f"[{self.into} has moved on since you began, and does not agree with your branch. What it has now "
            f"(commit {self.commit[:12]}) is merged into your worktree. Resolve the conflicts before anything "
            "else: keep what both sides want, and leave none of the marks <<<<<<<, ======= and >>>>>>> (HEAD is "
            f"your branch). You need not commit.]\n\n" + "\n".join(lines) + more
        )


async def begin(tree: Worktree, repos: Mirrors, repo: Repo, agent: str) -> Renewal | None:
    """Merge the default branch into the worktree where the two clash; None where there is nothing to resolve.

    A merge that a worker before us began is gone on with. ToolError where it cannot be begun.
    """
    git = _merger(tree)
    if commit := await git.merging():
        return await _found(git, commit, repo.default_branch)
    commit, head = await repos.base(repo, git), await git.head()
    trial = await git.trial(head, commit)
    if trial.base == commit or not trial.clashes:
        return None
    await git.begin_merge(commit, agent)
    return await _found(git, commit, repo.default_branch)


def _merger(tree: Worktree) -> Merger:
    return Merger(tree.path, tree.git.sandbox, tree.lock, tree.git.where, tree.git.known)


async def _found(git: Merger, commit: str, into: str) -> Renewal:
    files = {change.path: _KINDS[change.code] for change in await git.status() if change.code in _KINDS}
    return Renewal(commit, into, files)


async def give_up(tree: Worktree) -> bool:
    """Undo a merge whose conflicts nobody resolved: the branch is what it was. Whether there was one."""
    git = _merger(tree)
    if not await git.merging():
        return False
    await git.tidy()
    return True


def _is_marked(file: Path) -> bool:
    try:
        if file.is_symlink() or not file.is_file():
            return False
        with file.open("rb") as opened:
            return bool(_MARK.search(opened.read(_READ)))
    except OSError as error:
        raise ToolError(f"{file.name!r} cannot be read", str(error)) from error
