"""A task whose branch clashes with the default branch: the merge is begun for its agent, and held to its end."""

from __future__ import annotations

from dataclasses import replace

from shared import log
from shared.errors import Fenced, ToolError
from shared.store.records import Repo
from shared.tasks.worktree import renew
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.mirrors import Mirrors
from shared.tasks.worktree.renew import Renewal
from shared.turns.records import ConflictsRecord, NoteRecord
from shared.turns.turn import Turn

TRIES = 2  # times that an agent is told of conflicts that it left


class Resolver:
    """The merge of one turn, where one is needed. `tree` is the worktree with what its work is measured from."""

    def __init__(self, turn: Turn, tree: Worktree, repos: Mirrors, repo: Repo) -> None:
        self._turn, self._repos, self._repo = turn, repos, repo
        self.tree, self._left = tree, tree.base
        self._open: Renewal | None = None
        self._why = ""

    async def begin(self, agent: str) -> None:
        """Merge the default branch into the worktree where it clashes with the task's branch."""
        try:
            self._open = await renew.begin(self.tree, self._repos, self._repo, agent)
        except Fenced:
            raise
        except ToolError as error:
            log.get().warning("The default branch could not be merged into the task's", why=str(error))
            self._why = f"[{self._repo.default_branch} has moved on, and could not be merged into your branch: {error}]"
            return
        if self._open is not None:
            # What the default branch brings is none of the task's work.
            head = await self.tree.git.head()
            self._left = await self.tree.source.merge_base(self._open.commit, head) or self.tree.base
            await self._measure(self._open.commit)

    async def _measure(self, base: str) -> None:
        self.tree = replace(self.tree, base=base)
        await self.tree.lock.note(base=base)

    @property
    def words(self) -> str:
        """What the agent is told when it begins; "" where there is nothing to say."""
        return self._open.told(self.tree.path) if self._open else self._why

    def marked(self) -> list[str]:
        """The files in which conflicts are still marked: nothing may be committed as long as there are some."""
        return self._open.marked(self.tree.path) if self._open else []

    async def again(self) -> bool:
        """Whether the agent is to go on, since it left conflicts; it is told of them."""
        left = self.marked()
        told = len(self._turn.records.of(ConflictsRecord))
        if not left or told >= TRIES:
            return False
        words = f"[The marks of the conflict still stand in {', '.join(left[:20])}. Resolve these, too.]"
        await self._turn.step(ConflictsRecord(files=left[:50]), NoteRecord(text=words))
        return True

    async def end(self) -> list[str]:
        """Before the last commit: undo a merge that was not resolved. The files in which conflicts were left."""
        if not (left := self.marked()):
            return []
        await renew.give_up(self.tree)
        self._open = None
        await self._measure(self._left)
        return left
