"""Permission that is asked for while a command waits for its answer, given where the person sits."""

from __future__ import annotations

import asyncio
import contextlib
import sys

from gateways.cli import screen
from shared.bus.decisions import decision, named
from shared.bus.messages import Output, PersonDecision
from shared.client import Client
from shared.client.views.permissions import approvals
from shared.errors import PromptDockError


class ApprovalPrompt:
    """An async context manager: while it is open, what is put to it is answered by lines from the terminal."""

    def __init__(self, client: Client, user: str) -> None:
        self._client, self._user = client, user
        self._open: dict[str, Output] = {}  # approval id -> the request, the oldest first
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> ApprovalPrompt:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._end()

    async def put(self, output: Output) -> None:
        """Ask for the answer to a request, and to those that were put before and are still open."""
        await self._end()
        self._open[approvals.request_id(output)] = output
        self._open = {id: kept for id, kept in self._open.items() if await self._waits(id)}
        self._reading = asyncio.create_task(self._read())

    async def _waits(self, id: str) -> bool:
        """Whether nobody has answered it elsewhere."""
        with contextlib.suppress(PromptDockError):
            return not await approvals.decided(self._client, id)
        return True

    async def _read(self) -> None:
        while self._open:
            first = next(iter(self._open))
            several = (
                f"{len(self._open)} requests; for {first[: approvals.SHORT]}: " if len(self._open) > 1 else ""
            )
            asked = "yes, always or no? " if approvals.lasts(self._open[first].approval) else "yes or no? "
            print(f"… {several}{asked}", end="", file=sys.stderr, flush=True)
            line = await _line()
            if not line:  # nobody sits there any more
                return
            words = approvals.worded(line)
            fitting = [id for id in self._open if id.startswith(named(words) or first)]
            word = decision(words.strip())
            if word and len(fitting) == 1:
                await self._decide(fitting[0], *word)
            elif word:
                screen.talk(f"… several wait: name one, e.g. yes {first[: approvals.SHORT]}")
            elif words.strip():
                screen.talk("… that is no clear yes or no: nothing is allowed, and it is asked again")

    async def _decide(self, id: str, decision: PersonDecision, reason: str) -> None:
        output = self._open.pop(id)
        try:
            await self._client.decide(id, decision, self._user, output.session_id, reason=reason or None)
        except PromptDockError as error:
            screen.complain(error)

    async def _end(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading


async def _line() -> str:
    """One line of stdin, without a thread that would outlive us; "" at its end."""
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        loop.remove_reader(sys.stdin)
        if not heard.done():
            heard.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin, read)
    try:
        return await heard
    finally:
        loop.remove_reader(sys.stdin)
