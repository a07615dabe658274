"""The chat as plain lines: for pipes, NO_COLOR, and terminals that cannot be drawn on."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading

from gateways.terminal.commands import obey
from gateways.terminal.conversation import Conversation

_INTERRUPTED = 130


def _reader(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[str | None]) -> None:
    """Reads stdin on a thread of its own, which ends with the process."""

    def read() -> None:
        for text in iter(sys.stdin.readline, ""):
            loop.call_soon_threadsafe(queue.put_nowait, text)
        loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()


async def converse(here: Conversation) -> int:
    """Line by line, each answered before the next is read; Ctrl-C stops the turn, or leaves."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    leave = asyncio.Event()
    stopping: list[asyncio.Task[None]] = []  # of the turn that runs

    def interrupt() -> None:
        if stopping or not here.working:
            leave.set()
        else:
            stopping.append(loop.create_task(here.stop()))

    loop.add_signal_handler(signal.SIGINT, interrupt)
    _reader(loop, queue)
    gone = loop.create_task(leave.wait())
    try:
        while True:
            if sys.stdin.isatty():
                print("> ", end="", flush=True)
            reading = loop.create_task(queue.get())
            await asyncio.wait({reading, gone}, return_when=asyncio.FIRST_COMPLETED)
            if leave.is_set():
                reading.cancel()
                return _INTERRUPTED
            text = reading.result()
            if text is None or not await obey(here, text):
                return 0
            answered = loop.create_task(here.idle.wait())
            await asyncio.wait({answered, gone}, return_when=asyncio.FIRST_COMPLETED)
            answered.cancel()
            stopping.clear()
    finally:
        gone.cancel()
        loop.remove_signal_handler(signal.SIGINT)
