"""The tools as a conversation calls them: by name, through the handler, on a real Store and real files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.guard.sandbox.sandbox import Sandbox
from shared.store.base import Store
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools import catalog
from shared.tools.context import Context
from shared.tools.execute import ToolExecutor
from tests.tools.ground import git, repository

Result = dict[str, Any]


class Bench:
    """One home, one Store, one conversation. Each call is a step of its own unless the step is named."""

    def __init__(self, store: Store, home: Path, sandbox: Sandbox, home_id: str = "here") -> None:
        self.store, self.home = store, home
        self.handler = ToolExecutor(catalog.registry())
        self.repos = Mirrors(home, home_id, sandbox, allow_local=True)
        self.said: list[str] = []
        self.given: dict[str, Any] = {"repos": self.repos}  # what the worker hands over beside
        self._steps = itertools.count(1)
        self._journal: dict[str, Result] = {}  # what a step said that it was about to do

    def context(self, **more: Any) -> Context:
        async def say(text: str) -> None:
            self.said.append(text)

        fields: dict[str, Any] = {"agent": "chatter", "session_id": "talk", "turn_id": "t1", "user_id": "ada"}
        return Context(**{**fields, "store": self.store, "say": say, **self.given, **more})

    async def run(
        self, tool: str, /, *, step: str = "", here: Mapping[str, Any] | None = None, **arguments: Any
    ) -> Result:
        """The result, whatever it is."""
        step = step or f"t1.{next(self._steps)}"

        async def intend(does: Result) -> None:
            self._journal[step] = json.loads(json.dumps(does))

        journal = {"intend": intend, "intended": self._journal.get(step)}
        context = self.context(**{**journal, **(here or {})})
        result = await self.handler.execute(tool, arguments, context, step)
        json.dumps(result)  # it has to be plain
        return result

    async def ok(self, tool: str, /, **arguments: Any) -> Result:
        """The result of a call that has to succeed."""
        result = await self.run(tool, **arguments)
        assert "error" not in result, result
        return result

    async def no(self, tool: str, /, **arguments: Any) -> str:
        """The words of a call that has to be refused, and not by accident."""
        result = await self.run(tool, **arguments)
        assert "error" in result, result
        assert result["error"] != f"{tool} failed", result
        return " | ".join(str(result.get(part, "")) for part in ("error", "why", "fix"))

    async def twice(self, tool: str, /, **arguments: Any) -> Result:
        """A call that is run again after a crash, as the same step: nothing may happen twice."""
        step = f"t1.{next(self._steps)}"
        first = await self.ok(tool, step=step, **arguments)
        await self.ok(tool, step=step, **arguments)
        return first

    def repository(self, name: str, files: Mapping[str, str]) -> Path:
        """A repository of a person on this machine, with a remote of its own."""
        path = repository(self.home.parent / "work" / name, files).path
        remote = self.home.parent / "remotes" / f"{name}.git"
        remote.parent.mkdir(exist_ok=True)
        git(path, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
        git(path, "remote", "add", "origin", str(remote))
        git(path, "push", "--quiet", "origin", "main")
        return path

    async def linked(self, name: str = "shop", **files: str) -> Path:
        """The same, registered in the default project."""
        path = self.repository(name, files or {"app.py": "one\ntwo\n", "docs/a.md": "# a\n"})
        await self.ok("add_repo", source="link", path=str(path))
        return path
