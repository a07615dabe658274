"""Leave that is asked for while a command waits for its answer, given where the person sits."""

from __future__ import annotations

import asyncio
import contextlib
import sys

from gateways.cli import screen
from shared.bus.messages import Output, leave
from shared.errors import PromptDockError
from shared.visitor import Visitor

_ASKED = "… yes, always or no? "


class Leave:
    """An async context manager: while it is open, what is put to it is answered by lines from the terminal."""

    def __init__(self, visitor: Visitor, user: str) -> None:
        self._visitor, self._user = visitor, user
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Leave:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._end()

    async def put(self, output: Output) -> None:
        """Ask for the answer to a request; one that was asked before is answered elsewhere by now."""
        await self._end()
        self._reading = asyncio.create_task(self._read(output))

    async def _read(self, output: Output) -> None:
        approval = str((output.approval or {}).get("id", ""))
        while True:
            print(_ASKED, end="", file=sys.stderr, flush=True)
            line = await _line()
            if not line:  # nobody sits there any more
                return
            if word := leave(line.strip()):
                break
        try:
            await self._visitor.decide(
                approval, word[0], self._user, output.session_id, reason=word[1] or None
            )
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
