"""What a task knows of the others in its repository: who changes the same files, and who is told of it."""

from __future__ import annotations

from shared import log
from shared.errors import Fenced, PromptDockError, ToolError
from shared.store.records import Repo
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.claims import Claims, warning
from shared.worker.connection import Connection

_MOST = 500  # files changed by commands that are published


class OverlapWatch:
    """Of one task. With Redis away it knows nothing, and nothing waits for it."""

    def __init__(self, connection: Connection, repo: Repo, task: str, tree: Worktree) -> None:
        self._paths = Claims(connection.bus, connection.names, str(repo.id), task)
        self._tree = tree
        self._warned: set[str] = set()
        self._seen: set[str] = set()
        self._commands = 0  # that had run when we looked last

    async def before(self, path: str) -> None:
        """Called before a file is changed. ToolError, once, where another task changes it: the agent decides."""
        self._seen.add(path)
        try:
            others = await self._paths.claim(path)
        except PromptDockError as error:
            log.get().debug("What is being changed could not be published", why=str(error))
            return
        if others and path not in self._warned:
            self._warned.add(path)
            raise ToolError("nothing was changed yet", warning(path, others), "make the call again to go on")

    async def told(self, commands: int) -> list[str]:
        """News of the others, as notes for the agent; what `commands` so far have changed is published too."""
        try:
            found = [f"[{text}]" for text in await self._paths.told()]
            if commands == self._commands:
                return found
            self._commands = commands
            for path in (await self._tree.git.changed_files(self._tree.base))[:_MOST]:
                if path not in self._seen:
                    self._seen.add(path)
                    if others := await self._paths.claim(path):
                        self._warned.add(path)
                        found.append(f"[{warning(path, others)}]")
        except Fenced:
            raise
        except PromptDockError as error:
            log.get().debug("What others change is not known", why=str(error))
            return []
        return found

    async def end(self) -> None:
        """The task changes nothing any more."""
        try:
            await self._paths.release()
        except PromptDockError as error:
            log.get().debug("What was being changed is forgotten later", why=str(error))
