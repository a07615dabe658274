"""All MCP servers of a process: those that are configured now, each with its link."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shared import log
from shared.errors import ConfigurationError
from shared.mcp import config
from shared.mcp.config import Configured, Problem, Server
from shared.mcp.link import Health, Launch, Patience, ServerLink

HURRY = "mcp"  # a word on the board: somebody looks for servers that are lost
_SETTLE = 5.0  # seconds from its start in which a server may say what it has, before a turn begins without


@dataclass(frozen=True)
class Wants:
    """The servers of an agent: those of these names, None being all; and those that it brings, as they are written."""

    names: tuple[str, ...] | None = None
    own: Mapping[str, Any] = field(default_factory=dict)


class Servers:
    """Made by the composition root; `refresh` when a turn begins, `close` at the end."""

    def __init__(
        self,
        read: Callable[[], Configured],
        parse: Callable[[str, Any], Server],
        changed: Callable[[], object],
        launch: Launch,
        patience: Patience | None = None,
    ) -> None:
        self._read, self._parse, self._changed = read, parse, changed
        self._launch, self._patience = launch, patience or Patience()
        self._seen: object = None
        self._wants: dict[str, Wants] = {}  # by agent
        self._asked: dict[str, float] = {}  # by agent, when it asked for them last
        self._configured = Configured()
        self._own: dict[str, dict[str, Server]] = {}  # that profiles bring, by agent
        self._links: dict[str, ServerLink] = {}  # by all that a server is
        self._running: dict[str, tuple[asyncio.Task[None], float]] = {}

    @classmethod
    def of_home(
        cls, home: Path, secrets: Sequence[str], launch: Launch, patience: Patience | None = None
    ) -> Servers:
        """Those that are configured in this data folder, and in the folder for which we work."""
        return cls(
            lambda: config.read(home, config.environment(home), secrets),
            lambda name, entry: config.server(
                name, entry, config.PROFILES, config.environment(home), secrets
            ),
            lambda: config.signature(home),
            launch,
            patience,
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is configured and cannot be used."""
        return self._configured.problems

    @property
    def health(self) -> list[Health]:
        """How all of them are."""
        return [one.health for one in self._links.values()]

    async def refresh(self, agent: str, wants: Wants) -> dict[str, ServerLink]:
        """Those that this agent has, as they are configured now; who has just begun is waited for, a little."""
        self._wants[agent], self._asked[agent] = wants, time.monotonic()
        since = time.monotonic() - self._patience.idle
        for other in [name for name, asked in self._asked.items() if asked < since and name != agent]:
            del self._wants[other], self._asked[other]
        seen = (self._changed(), dict(self._wants))
        if seen != self._seen:
            self._seen = seen
            self._configured = await asyncio.to_thread(self._read)
            self._brought()
            for problem in self._configured.problems:
                log.get().warning("An MCP server cannot be used", about=problem.about, why=problem.why)
            await self._reconcile()
        await self._settle()
        found = {server.name: self._links.get(_key(server)) for server in self._of(agent)}
        return {name: link for name, link in found.items() if link is not None}

    def hurry(self) -> None:
        """Try again now those that are lost."""
        for link in self._links.values():
            link.hurry()

    async def close(self) -> None:
        """End all of them."""
        self._wants = {}
        await self._reconcile()

    def _brought(self) -> None:
        """Read what the profiles bring."""
        problems = list(self._configured.problems)
        for agent, wants in self._wants.items():
            self._own[agent] = {}
            for name, entry in wants.own.items():
                try:
                    self._own[agent][name] = self._parse(name, entry)
                except ConfigurationError as error:
                    problems.append(Problem(f"{name} of {agent}", error.why, error.fix))
        self._configured = replace(self._configured, problems=tuple(problems))

    def _of(self, agent: str) -> list[Server]:
        wants = self._wants[agent]
        named = self._configured.servers.values()
        every = {one.name: one for one in named if wants.names is None or one.name in wants.names}
        return list({**every, **self._own.get(agent, {})}.values())

    async def _reconcile(self) -> None:
        wanted = {_key(server): server for agent in self._wants for server in self._of(agent)}
        ended = []
        for key in [key for key in self._links if key not in wanted]:
            del self._links[key]
            ended.append(self._running.pop(key)[0])
            ended[-1].cancel()
        for key, server in wanted.items():
            if key not in self._links:
                log.hide(*server.spec.secrets())
                link = self._links[key] = ServerLink(server, self._launch, self._patience)
                task = asyncio.create_task(link.run(), name=f"mcp {server.name}")
                self._running[key] = (task, time.monotonic())
        await asyncio.gather(*ended, return_exceptions=True)

    async def _settle(self) -> None:
        new = [
            (self._links[key], begun + _SETTLE - time.monotonic())
            for key, (_, begun) in self._running.items()
            if not self._links[key].tried.is_set()
        ]
        left = max((seconds for _, seconds in new), default=0)
        if left > 0:
            waits = [asyncio.ensure_future(one.tried.wait()) for one, _ in new]
            await asyncio.wait(waits, timeout=left)
            for wait in waits:
                wait.cancel()


def _key(server: Server) -> str:
    return f"{server.name} {server.spec.model_dump_json()} {server.folder}"
