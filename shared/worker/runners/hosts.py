"""Homes beyond one disk: a tool that reads runs where the files lie, asked by a `command` on `home:<id>`.

Only looking is done so, which may be done twice: whoever asks publishes again until an answer comes, and any
worker on that disk serves it, the first one to take it. What changes files is done on their own home.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from shared import log
from shared.bus import messages, reading
from shared.errors import BadMessage, PromptDockError
from shared.store.base import Store
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools.context import Context
from shared.tools.execute import ToolExecutor
from shared.turns.signatures import Signatures
from shared.worker.connection import Connection
from shared.worker.runners.closing import Replies

SERVED = ("files", "git", "history")  # categories whose reading tools are run for others
ALSO = ("get_task_diff",)  # and these
_AGAIN = 5.0  # seconds after which a question that nobody answered is published again
_PATIENCE = 40.0  # seconds that a search, the slowest of these tools, may take with its ways


PeerAnswer = Callable[
    [float], Awaitable[dict[str, Any] | None]
]  # waits so many seconds for the answer's payload


class HostCalls(Protocol):
    """A turn that asks."""

    @property
    def connection(self) -> Connection: ...
    @property
    def agent(self) -> str: ...
    def awaiting(self, key: str, whom: str) -> AbstractAsyncContextManager[PeerAnswer]: ...


def channel(home: str) -> str:
    """Where the workers of a disk listen."""
    return f"home:{home}"


class RemoteHost:
    """Serves the others what lies on this disk."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        repos: Mirrors,
        replies: Replies,
        executor: ToolExecutor,
        signatures: Signatures,
    ) -> None:
        self._connection, self._store, self._repos = connection, store, repos
        self._replies, self._executor, self._signatures = replies, executor, signatures
        self._channel = connection.names.channel(channel(repos.home_id))
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Listen and serve until cancelled."""
        listener = self._connection.bus.listener(
            [self._channel], self._take, _nothing, self._connection.names.presence
        )
        try:
            await listener.run()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    def _take(self, _channel: str, data: bytes) -> None:
        task = asyncio.create_task(self._serve(data))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, data: bytes) -> None:
        try:
            content = reading.read(data)
            request = messages.agent(content)
            if not self._signatures.signed(self._channel, content):
                log.get().warning(
                    "A request to this home was refused", why="it is not signed by this cluster"
                )
                await self._replies.deliver(request, "error", dict(_UNSIGNED))
                return
            if request.type != "command" or not await self._is_ours(request.id):
                return
            result = await self._run(request)
            kind: Any = "error" if "error" in result else "response"
            await self._replies.deliver(request, kind, result)
        except BadMessage as error:
            log.get().warning("A message to this home cannot be read", why=str(error))
        except PromptDockError as error:
            log.get().warning("What was asked of this home is not answered", why=str(error))

    async def _is_ours(self, request: str) -> bool:
        """The first to take it serves it; should that one die, the question comes again."""
        key = self._connection.names.host_request(self._repos.home_id, request)
        return bool(await self._connection.bus.command("SET", key, "1", "NX", "PX", int(_AGAIN * 900)))

    async def _run(self, request: messages.AgentMessage) -> dict[str, Any]:
        name, arguments = str(request.payload.get("tool") or ""), request.payload.get("arguments")
        registry = self._executor.registry
        tool = registry.get(name) if name in registry else None
        if tool is None or not tool.reads_only or not (tool.category in SERVED or name in ALSO):
            return {"error": f"{name[:80]!r} is not run for others", "why": "only what reads files is"}
        context = Context(
            agent=self._replies.agent,
            session_id="",
            turn_id=request.id,
            store=self._store,
            project_id=str(request.payload.get("project") or "default"),
            repos=self._repos,
        )
        log.get().info("Reading for another home", tool=name, sender=request.sender)
        return await self._executor.execute(name, arguments, context, request.id)


_UNSIGNED = {
    "error": "the machine that has the files refused",
    "why": "the request is not signed with its secret",
    "fix": "start the workers of all machines with the same PROMPTDOCK_SECRET",
}


async def _nothing() -> None:
    return None


async def ask(mine: HostCalls, home: str, payload: dict[str, Any], key: str) -> dict[str, Any]:
    """Run a tool that reads on another disk, and await its result."""
    connection = mine.connection
    name = connection.names.channel(channel(home))
    heard_by = await connection.bus.listeners(name)
    if not heard_by:
        return {
            "error": "the files lie on another machine, where no worker runs now",
            "why": f"nobody listens on home:{home}",
            "fix": "start an agent there, or go on without them",
        }
    request = messages.AgentMessage.outgoing(key, mine.agent, "home", "command", payload, patience=_PATIENCE)
    data = request.model_copy(update={"sig": connection.signer.sign(name, request.fields())}).to_bytes()
    ends = time.monotonic() + _PATIENCE
    async with mine.awaiting(key, f"home:{home}") as answer:
        while time.monotonic() < ends:
            await connection.bus.publish(name, data)
            if (found := await answer(min(_AGAIN, max(0.1, ends - time.monotonic())))) is not None:
                return found
    return {
        "error": "the machine that has the files did not answer",
        "why": f"home {home} was silent for {_PATIENCE:.0f} s",
        "fix": "try again",
    }
