"""Run one child process: its own group, a bound on time and output, no secret in its environment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from shared import failpoints
from shared.errors import ToolError
from shared.guard.processes.reserve import EVERY, Reserve
from shared.guard.processes.starts import absolute
from shared.redaction import cut

LIMIT = 64 * 1024
PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_DRAIN = 2.0  # seconds that a killed group's pipes may take to end


@dataclass(frozen=True)
class Finished:
    """How a child ended. `exit_code` is negative for a signal, as in `subprocess`; `ms` is wall time."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool
    truncated: bool
    ms: int
    ended: str = ""  # why it was, where it was we who ended it, and not for its time

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out and not self.ended


class Child(Protocol):
    """A child that is about to start: what it inherits, and where its group is written down."""

    fd: int

    def started(self, pid: int) -> None: ...


class Lock(Protocol):
    """What children hold while they live, so that a successor can find and end them.

    Both raise Fenced once a successor has taken over; from entering to leaving, no successor does.
    """

    def child(self) -> AbstractAsyncContextManager[Child]:
        """Around the start of a child."""

    def held(self) -> AbstractAsyncContextManager[None]:
        """Around a short change that we make ourselves."""


def environment(home: Path | str | None = None, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The few variables that a child gets; nothing else of ours passes, since it may be a secret."""
    scratch = str(home or tempfile.gettempdir())
    passed = os.environ if failpoints.without("clean-environment") else PASSED
    kept = {name: os.environ[name] for name in passed if name in os.environ}
    kept["PATH"] = absolute(kept.get("PATH", os.defpath))
    return {"LANG": "C.UTF-8", **kept, "HOME": scratch, "TMPDIR": scratch, **(extra or {})}


class _Clip:
    """The head and the tail of a stream, at most `limit` bytes together."""

    def __init__(self, limit: int) -> None:
        self.head, self.tail, self.left_out = bytearray(), bytearray(), 0
        self._half, self._rest = limit // 2, limit - limit // 2

    def add(self, data: bytes) -> None:
        room = self._half - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        if (over := len(self.tail) - self._rest) > 0:
            del self.tail[:over]
            self.left_out += over

    def text(self, errors: str) -> str:
        if not self.left_out:
            return (self.head + self.tail).decode("utf-8", errors)
        head, tail = cut(self.head.decode("utf-8", "ignore"), self.tail.decode("utf-8", "ignore"))
        return f"{head}\n[… {self.left_out} bytes left out …]\n{tail}"


async def run(
    argv: Sequence[str],
    *,
    cwd: Path | str,
    env: Mapping[str, str] | None = None,
    timeout: float = 120.0,
    limit: int = LIMIT,
    error_limit: int | None = None,
    stdin: bytes | None = None,
    lock: Lock | None = None,
    errors: str = "replace",
    reserve: Reserve | None = None,
) -> Finished:
    """Run `argv` (no shell) to its end, or to `timeout` seconds, or until we are cancelled.

    In each of the last two the whole process group gets SIGKILL, and no zombie stays. Of each stream
    `limit` bytes are kept, head and tail (`error_limit` for stderr). `env` is the whole environment.
    `errors` says what becomes of bytes in stdout that are no UTF-8, as in `bytes.decode`. With a `reserve` it
    is ended as well when what it writes would take that.
    Raises ToolError where the program cannot be started, Fenced where `lock` was taken by a successor.
    """
    begun = time.monotonic()
    watch = _Watch(_Clip(limit), _Clip(limit if error_limit is None else error_limit))
    env = environment() if env is None else env
    transport = await _start(watch, argv, cwd, env, stdin is not None, lock)
    timed_out, ended = False, ""
    try:
        _feed(transport, stdin)
        async with asyncio.timeout(timeout):
            ended = await _ends(watch, reserve)
    except TimeoutError:
        timed_out = not watch.exited.done()
    finally:
        await asyncio.shield(_end(transport, watch))
    took = int((time.monotonic() - begun) * 1000)
    truncated = bool(watch.out.left_out or watch.err.left_out)
    code = transport.get_returncode()
    return Finished(
        -1 if code is None else code,
        watch.out.text(errors),
        watch.err.text("replace"),
        timed_out,
        truncated,
        took,
        ended,
    )


async def _ends(watch: _Watch, reserve: Reserve | None) -> str:
    """Wait until it has ended, or takes what is reserved: then why it must end."""
    if reserve is None:
        await asyncio.shield(watch.exited)
        return ""
    while not watch.exited.done():
        await asyncio.wait([watch.exited], timeout=EVERY)
        if not watch.exited.done() and (why := reserve.taken()):
            return why
    return ""


class _Watch(asyncio.SubprocessProtocol):
    """Keeps what a child prints; `exited` when it has ended, `closed` when its pipes have ended as well.

    asyncio's own `Process.wait` waits for the pipes too, which a grandchild may hold open.
    """

    def __init__(self, out: _Clip, err: _Clip) -> None:
        loop = asyncio.get_running_loop()
        self.out, self.err = out, err
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.out if fd == 1 else self.err).add(data)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def _start(
    watch: _Watch,
    argv: Sequence[str],
    cwd: Path | str,
    env: Mapping[str, str],
    talks: bool,
    lock: Lock | None,
) -> asyncio.SubprocessTransport:
    if lock is None:
        return await _spawn(watch, argv, cwd, env, talks, ())
    async with lock.child() as child:
        transport = await _spawn(watch, argv, cwd, env, talks, (child.fd,))
        child.started(transport.get_pid())
        return transport


async def _spawn(
    watch: _Watch,
    argv: Sequence[str],
    cwd: Path | str,
    env: Mapping[str, str],
    talks: bool,
    fds: tuple[int, ...],
) -> asyncio.SubprocessTransport:
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: watch,
            *argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=fds,
        )
    )
    try:
        return (await asyncio.shield(starting))[0]
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            await _end((await starting)[0], watch)
        raise
    except (OSError, ValueError) as error:
        why = "the command holds a NUL" if isinstance(error, ValueError) else os.strerror(error.errno or 0)
        raise ToolError(
            f"{Path(argv[0]).name} could not be started", why.lower(), "check that it is installed"
        ) from None


def _feed(transport: asyncio.SubprocessTransport, data: bytes | None) -> None:
    # uvloop's transports are none of asyncio's classes, so that it is no use to ask for them.
    pipe = cast("asyncio.WriteTransport | None", transport.get_pipe_transport(0))
    if pipe is not None:
        # It may have ended already without reading; asyncio says nothing then, uvloop raises.
        with contextlib.suppress(RuntimeError):
            pipe.write(data or b"")
            pipe.write_eof()


async def _end(transport: asyncio.SubprocessTransport, watch: _Watch) -> None:
    """Kill the group with what is left in it, reap the child, and read what its pipes hold, with a bound.

    Who left the group may hold a pipe for ever; then we close our end.
    """
    end_group(transport.get_pid())
    await watch.exited
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(watch.closed), _DRAIN)
    transport.close()


def end_group(group: int) -> None:
    """SIGKILL to a whole process group; one that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
