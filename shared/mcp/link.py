"""The session with one server: opened, kept, listed anew, and opened again by itself when it is lost.

A session lives in one task (`run`), and whoever calls does so from theirs. A call on a server that is away waits a
little for it to come back; one that was under way when the server was lost is made again only where that does no
harm. Nothing that a server does is raised but as a ToolError.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from shared import log
from shared.errors import ToolError
from shared.mcp import failures, http, listing, stdio
from shared.mcp.bounds import DESCRIBED, LISTED, Watch
from shared.mcp.config import Server
from shared.mcp.listing import ListedTool, Listing

if TYPE_CHECKING:
    from mcp import types
    from mcp.client.session import ClientSession

State = Literal["starting", "ready", "lost", "off"]
Launch = Callable[[Server], stdio.Start]
Progress = Callable[[str], Awaitable[None]]
T = TypeVar("T")
_FORGOTTEN = "ServerLink terminated"  # as the library says it of a server that has begun anew
_FIRST, _MOST, _GROWS = 0.5, 60.0, 2.0  # seconds between tries to open a session, and how they become more


@dataclass(frozen=True)
class Patience:
    """How long, in seconds, is waited for what."""

    start: float = 30.0  # until a server has begun, and said what it has
    health: float = 30.0  # between looks whether it is still there
    answer: float = 10.0  # for a list
    back: float = 10.0  # that a call waits for a server that is away
    idle: float = 3600.0  # after which an agent that takes no turn here has no servers here


@dataclass(frozen=True)
class Health:
    """A server as it is now, for people."""

    name: str
    state: State
    tools: int
    why: str = ""
    left_out: tuple[str, ...] = ()
    called: str = ""  # as it calls itself
    tries: int = 0  # how often it was lost, or could not be reached

    def card(self) -> dict[str, Any]:
        """For the heartbeat of the worker that has it."""
        why = {"why": log.redact(self.why)[:160]} if self.why else {}
        return {"name": self.name, "state": self.state, "tools": self.tools, "tries": self.tries, **why}


class ServerLink:
    """One server. `run` keeps its session until it is cancelled."""

    def __init__(self, server: Server, launch: Launch, patience: Patience | None = None) -> None:
        self.server, self._launch, self._patience = server, launch, patience or Patience()
        self.state: State = "off" if server.spec.disabled else "starting"
        self.why, self.called, self._tries = "", "", 0
        self.listing = Listing()
        self.tried = asyncio.Event()  # it is known whether the first try came to something
        self._session: ClientSession | None = None
        self._watch = Watch()
        self._ready = asyncio.Event()
        self._hurry = asyncio.Event()  # somebody waits for it
        self._changed = asyncio.Event()  # it said that its list is another one

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def health(self) -> Health:
        """How it is."""
        tools, left = self.listing.tools, self.listing.left_out
        return Health(self.name, self.state, len(tools), self.why, left, self.called, self._tries)

    def tool(self, name: str) -> ListedTool | None:
        """As it was listed last."""
        return next((tool for tool in self.listing.tools if tool.name == name), None)

    # -- the session -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Open a session, keep it, and open another one whenever it is lost."""
        if self.state == "off":
            self.tried.set()
            return
        pause = _FIRST
        while True:
            begun = time.monotonic()
            self._watch = Watch()
            try:
                await self._keep(self._watch)
            except Exception as error:
                self._watch.fail(failures.words(error))
            finally:
                self._session = None
                self._ready.clear()
            self._lost()
            # Who holds for long is tried again at once; who does not, with longer and longer pauses.
            pause = _FIRST if time.monotonic() - begun > _MOST else min(pause * _GROWS, _MOST)
            await self._rest(pause)

    def _lost(self) -> None:
        why = self._watch.why or "its session ended"
        if self.state != "lost" or self.why != why:
            log.get().warning("An MCP server is lost", server=self.name, why=log.redact(why)[:DESCRIBED])
        self.state, self.why = "lost", why
        self._tries += 1
        self.tried.set()

    async def _rest(self, pause: float) -> None:
        """Wait before the next try; who needs the server shortens it, but not to nothing."""
        await asyncio.sleep(min(pause, _FIRST) * random.uniform(0.8, 1.2))
        try:
            async with asyncio.timeout(pause - _FIRST):
                await self._hurry.wait()
        except TimeoutError:
            pass
        self._hurry.clear()

    async def _keep(self, watch: Watch) -> None:
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self._patience.start):
                    session = await stack.enter_async_context(self._opened(watch))
                    self._took(await listing.tools(session, self.name))
            except TimeoutError:
                watch.fail(f"it did not begin within {self._patience.start:g} s")
                raise
            self._session, self.state, self.why = session, "ready", ""
            self._ready.set()
            self.tried.set()
            log.get().info("An MCP server is here", server=self.name, tools=len(self.listing.tools))
            while await self._until_due(watch):
                async with asyncio.timeout(self._patience.answer):
                    self._took(await listing.tools(session, self.name))

    async def _until_due(self, watch: Watch) -> bool:
        """Whether it is time to list anew; False where the session is over."""
        waits = [asyncio.ensure_future(one.wait()) for one in (watch.broken, self._changed)]
        try:
            await asyncio.wait(waits, timeout=self._patience.health, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        self._changed.clear()
        return not watch.broken.is_set()

    @asynccontextmanager
    async def _opened(self, watch: Watch) -> AsyncIterator[ClientSession]:
        from mcp import types
        from mcp.client.client import Client

        failures.quiet()

        async def heard(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                self._changed.set()

        client = Client(
            self._transport(watch),
            message_handler=heard,
            client_info=types.Implementation(name="promptdock", version="1"),
            read_timeout_seconds=self._patience.answer,
            cache=None,
        )
        async with client:
            info = client.server_info
            self.called = f"{info.name} {info.version}"[:80] if info else ""
            yield client.session

    def _transport(self, watch: Watch) -> AbstractAsyncContextManager[Any]:
        if self.server.spec.type == "http":
            return http.transport(self.server.spec, watch)
        return stdio.transport(self._launch(self.server), watch)

    def _took(self, now: Listing) -> None:
        if now != self.listing:
            self.listing = now
            for left in now.left_out[:5]:
                log.get().warning(
                    "A tool of an MCP server is left out", server=self.name, why=left[:DESCRIBED]
                )

    # -- calls -----------------------------------------------------------------------------------------------

    def hurry(self) -> None:
        """Somebody looks for it: where it is lost, it is tried again now."""
        if self.state == "lost":
            self._hurry.set()

    async def present(self) -> None:
        """ToolError where the server is away, after a while in which it may come back."""
        await self._usable()

    async def call(self, tool: ListedTool, arguments: dict[str, Any], say: Progress) -> types.CallToolResult:
        """Run one tool there."""
        from mcp import types

        timeout = self.server.spec.timeout

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            of = f" of {total:g}" if total else ""
            await say(f"{self.name}: {message[:200]}" if message else f"{self.name}: {progress:g}{of}")

        async def ask(session: ClientSession) -> types.CallToolResult:
            params = types.CallToolRequestParams(name=tool.theirs, arguments=arguments)
            request = types.CallToolRequest(params=params)
            return await session.send_request(
                request,
                types.CallToolResult,
                request_read_timeout_seconds=timeout,
                progress_callback=progress,
            )

        return await self._asked(ask, f"{tool.name} of {self.name}", timeout, tool.effect != "once")

    async def resources(self) -> tuple[list[types.Resource], list[types.ResourceTemplate]]:
        """What can be read there."""
        from mcp import types

        async def ask(session: ClientSession) -> tuple[list[types.Resource], list[types.ResourceTemplate]]:
            page = types.PaginatedRequestParams
            found = await listing.pages(
                lambda at: session.list_resources(params=page(cursor=at)), "resources", LISTED
            )
            more = await listing.pages(
                lambda at: session.list_resource_templates(params=page(cursor=at)),
                "resource_templates",
                LISTED,
            )
            return found[:LISTED], more[:LISTED]

        return await self._listed(ask, "resources")

    async def prompts(self) -> list[types.Prompt]:
        """The prompts that it offers."""
        from mcp import types

        async def ask(session: ClientSession) -> list[types.Prompt]:
            page = types.PaginatedRequestParams
            return (
                await listing.pages(
                    lambda at: session.list_prompts(params=page(cursor=at)), "prompts", LISTED
                )
            )[:LISTED]

        return await self._listed(ask, "prompts")

    async def read(self, uri: str) -> types.ReadResourceResult:
        """What a resource holds."""
        return await self._listed(lambda session: session.read_resource(uri), "resources")

    async def prompt(self, name: str, arguments: dict[str, str]) -> types.GetPromptResult:
        """A prompt, filled in."""
        return await self._listed(lambda session: session.get_prompt(name, arguments), "prompts")

    async def _listed(self, ask: Callable[[ClientSession], Awaitable[T]], what: str) -> T:
        return await self._asked(ask, f"{what} of {self.name}", self.server.spec.timeout, True)

    async def _asked(
        self, ask: Callable[[ClientSession], Awaitable[T]], what: str, timeout: float, again: bool
    ) -> T:
        """What it answers; ToolError for whatever goes wrong. Where it is lost meanwhile, it is asked `again`."""
        session = await self._usable()
        watch = self._watch
        try:
            return await self._answer(session, watch, ask, timeout)
        except _Lost as lost:
            if lost.ran and not again:
                raise ToolError(
                    f"the MCP server {self.name} was lost while {what} ran",
                    f"whether it took effect is not known: {lost}",
                    "look whether its effect is there before you run it again",
                ) from None
        session = await self._usable()
        try:
            return await self._answer(session, self._watch, ask, timeout)
        except _Lost as lost:
            raise self._away(str(lost)) from None

    async def _answer(
        self,
        session: ClientSession,
        watch: Watch,
        ask: Callable[[ClientSession], Awaitable[T]],
        timeout: float,
    ) -> T:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        asked = asyncio.ensure_future(ask(session))
        broken = asyncio.ensure_future(watch.broken.wait())
        try:
            async with asyncio.timeout(timeout + 5):
                await asyncio.wait([asked, broken], return_when=asyncio.FIRST_COMPLETED)
                if not asked.done():
                    raise _Lost(watch.why)
                return asked.result()
        except TimeoutError:
            raise self._slow(timeout) from None
        except MCPError as error:
            if error.error.code == REQUEST_TIMEOUT:
                raise self._slow(timeout) from None
            if watch.broken.is_set() or error.error.code == CONNECTION_CLOSED or _gone(error.error.message):
                watch.fail(error.error.message[:DESCRIBED])
                raise _Lost(watch.why, ran=error.error.message != _FORGOTTEN) from None
            why = f"it says: {error.error.message[:DESCRIBED]}"
            raise ToolError(f"the MCP server {self.name} refused", why, "correct the call") from None
        except (_Lost, ToolError):
            raise
        except Exception as error:
            if watch.broken.is_set():
                raise _Lost(watch.why) from None
            raise ToolError(
                f"the MCP server {self.name} answered what cannot be read",
                failures.words(error)[:DESCRIBED],
                "go on without it",
            ) from None
        finally:
            for task in (asked, broken):
                task.cancel()
            await asyncio.gather(asked, broken, return_exceptions=True)

    async def _usable(self) -> ClientSession:
        if self.state == "off":
            raise ToolError(
                f"the MCP server {self.name} is switched off", "mcp.json says disabled", "go on without it"
            )
        if self._session is not None and self._watch.broken.is_set():
            self._session = None  # it is over, and its task is about to find out
            self._ready.clear()
        if self._session is None:
            self._hurry.set()
            try:
                async with asyncio.timeout(self._patience.back):
                    await self._ready.wait()
            except TimeoutError:
                raise self._away(self.why or "it has not begun yet") from None
        if self._session is None:
            raise self._away(self.why)
        return self._session

    def _away(self, why: str) -> ToolError:
        return ToolError(
            f"the MCP server {self.name} is not there",
            why[:DESCRIBED],
            "it is tried again by itself: go on without it, or try later",
        )

    def _slow(self, timeout: float) -> ToolError:
        return ToolError(
            f"the MCP server {self.name} did not answer",
            f"it was silent for {timeout:g} s",
            "whether it did something is not known: look before you run it again",
        )


class _Lost(Exception):
    """The session ended under a call; `str()` says why, `ran` whether the server may have begun with it."""

    def __init__(self, why: str, ran: bool = True) -> None:
        super().__init__(why)
        self.ran = ran


def _gone(message: str) -> bool:
    """How the library says over HTTP that the server knows this session no more, or is not there."""
    return message in (_FORGOTTEN, "Server returned an error response")
