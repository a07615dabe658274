"""A server that is a child of ours and speaks over its stdin and stdout: bounded, in a group of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.errors import ToolError
from shared.mcp.bounds import MESSAGE, Flood, Watch

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

_GRACE = 1.0  # seconds in which it may end by itself, once its stdin is closed, and again after SIGTERM
_LAST = 2000  # bytes of what it printed last on stderr


@dataclass(frozen=True)
class Start:
    """How it is started: nothing of our own environment passes but what stands here."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str


@dataclass
class _Started:
    process: asyncio.subprocess.Process
    last: bytearray = field(default_factory=bytearray)  # of stderr

    async def ended(self) -> str:
        """Why it speaks no more, in words."""
        await _gone(self.process)
        code = self.process.returncode
        how = "it closed its output" if code is None else f"it ended with exit code {code}"
        said = " ".join(self.last.decode("utf-8", "replace").split())[-300:]
        return f"{how}: {said}" if said else how


@asynccontextmanager
async def transport(start: Start, watch: Watch) -> AsyncIterator[Any]:
    """The streams of a session with a child; it is ended when the context is left. ToolError where it cannot start."""
    import anyio

    child = await _spawned(start)
    taken: tuple[Any, Any] = anyio.create_memory_object_stream(0)
    given: tuple[Any, Any] = anyio.create_memory_object_stream(0)
    tasks = [
        asyncio.create_task(_read(child, taken[0], watch)),
        asyncio.create_task(_write(child, given[1], watch)),
        asyncio.create_task(_listen(child)),
    ]
    try:
        yield taken[1], given[0]
    finally:
        for stream in (*taken, *given):
            stream.close()
        for task in tasks:
            task.cancel()
        await _whatever_comes(_end(child, tasks))


async def _whatever_comes(work: Coroutine[Any, Any, None]) -> None:
    """Do this to its end: who cancels us, how often they may, waits for it."""
    doing, cancelled = asyncio.ensure_future(work), False
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


async def _spawned(start: Start) -> _Started:
    try:
        process = await asyncio.create_subprocess_exec(
            *start.argv,
            cwd=start.cwd,
            env=dict(start.env),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=MESSAGE,
        )
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno or 0).lower() if isinstance(error, OSError) else str(error)
        raise ToolError(f"{start.argv[0]} could not be started", why, "check that it is installed") from None
    return _Started(process)


async def _read(
    child: _Started, out: MemoryObjectSendStream[SessionMessage | Exception], watch: Watch
) -> None:
    """One message a line; what is none is passed over, as programs print all sorts of things."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    assert child.process.stdout is not None
    why = ""
    try:
        while line := await child.process.stdout.readline():
            watch.took(len(line))
            with contextlib.suppress(ValueError):
                await out.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))
    except ValueError:  # of the reader: its buffer is full
        with contextlib.suppress(Flood):
            watch.too_long()
    except Flood as error:
        why = str(error)
    watch.fail(why or await child.ended())
    out.close()


async def _write(child: _Started, given: MemoryObjectReceiveStream[SessionMessage], watch: Watch) -> None:
    assert child.process.stdin is not None
    try:
        async for message in given:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            child.process.stdin.write(text.encode() + b"\n")
            await child.process.stdin.drain()
    except (OSError, RuntimeError):  # uvloop says so of a pipe that is closed
        watch.fail(await child.ended())


async def _listen(child: _Started) -> None:
    """Keep the end of what it prints for people."""
    assert child.process.stderr is not None
    while data := await child.process.stderr.read(16 * 1024):
        child.last += data
        del child.last[:-_LAST]


async def _end(child: _Started, tasks: list[asyncio.Task[None]]) -> None:
    """As the protocol has it: its input is closed, then it is told to end, then its whole group is killed."""
    await asyncio.gather(*tasks, return_exceptions=True)
    process = child.process
    if process.stdin is not None:
        process.stdin.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            _signal(process.pid, number)
        if await _gone(process):
            break
    _signal(process.pid, signal.SIGKILL)  # what it left in its group
    # A descendant that left the group may hold a pipe: nobody waits for that.
    getattr(process, "_transport").close()  # noqa: B009


async def _gone(process: asyncio.subprocess.Process) -> bool:
    ends = asyncio.get_running_loop().time() + _GRACE
    while process.returncode is None:
        if asyncio.get_running_loop().time() > ends:
            return False
        await asyncio.sleep(0.01)
    return True


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
