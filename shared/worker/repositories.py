"""The repositories of projects, as they can be read here; with the Store down, as they were last read."""

from __future__ import annotations

from shared import log
from shared.errors import PromptDockError, StoreUnavailable
from shared.store.base import Store
from shared.store.records import Repo, project_key
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools.context import Root

KNOWN = 256  # projects whose repositories are remembered


class KnownRepositories:
    """Those of one worker's projects."""

    def __init__(self, store: Store, mirrors: Mirrors) -> None:
        self._store, self._mirrors = store, mirrors
        self._known: dict[str, list[Repo]] = {}  # by project, as last read

    async def rows(self, project: str) -> list[Repo]:
        """The rows of a project's repositories."""
        try:
            where = {"project_id": project_key(project)}
            rows = await self._store.select(Repo, where, order=[("name", "asc")])
            self._known.pop(project, None)
            self._known[project] = rows
            if len(self._known) > KNOWN:  # anybody may name projects; those that were asked for last are kept
                del self._known[next(iter(self._known))]
        except StoreUnavailable as error:
            log.get().warning("The repositories are taken as last read", why=str(error))
        return self._known.get(project, [])

    async def roots(self, project: str) -> dict[str, Root]:
        """The repositories of a project that can be read here, by name."""
        roots: dict[str, Root] = {}
        for row in await self.rows(project):
            try:
                path, commit = await self._mirrors.read_root(row)
            except PromptDockError as error:
                log.get().warning("A repository cannot be read", repo=row.name, why=str(error))
                continue
            roots[row.name] = Root(row.name, path, kind=row.kind, commit=commit)
        return roots
