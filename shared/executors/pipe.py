"""The pipe to a Claude Code process that we start ourselves: fenced, in a group of its own, with a clean environment.

The SDK's own way of starting it hands over our whole environment, and knows nothing of a worktree's lock.
This is what the SDK calls a Transport, without being derived from it: the SDK is an extra, and imported late.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from shared.errors import ModelError
from shared.guard.processes.process import Lock, end_group

_LINE = 16 * 1024 * 1024  # bytes of one message
_ERRORS = 4000  # characters of stderr that are kept
_END = 2.0  # seconds in which it may write its session down and leave


class Pipe:
    """One process, which lives as long as this is connected."""

    def __init__(self, argv: Sequence[str], folder: Path, environment: dict[str, str], lock: Lock) -> None:
        self._argv, self._folder, self._environment, self._lock = argv, folder, environment, lock
        self._process: asyncio.subprocess.Process | None = None
        self._errors = ""
        self._reading: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    @property
    def errors(self) -> str:
        """The end of what it complained about."""
        return self._errors.strip()

    async def connect(self) -> None:
        """Start it; Fenced where a successor has taken the worktree over."""
        async with self._lock.child() as child:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                cwd=self._folder,
                env=self._environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE,
                start_new_session=True,
                pass_fds=(child.fd,),
            )
            child.started(process.pid)
        self._process = process
        self._reading = asyncio.create_task(self._complaints(process))

    async def _complaints(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(4096):
            self._errors = (self._errors + data.decode("utf-8", "replace"))[-_ERRORS:]

    async def write(self, data: str) -> None:
        """Send a line."""
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            raise ModelError("Claude Code has ended")
        async with self._writing:
            try:
                process.stdin.write(data.encode())
                await process.stdin.drain()
            except (ConnectionError, RuntimeError) as error:
                raise ModelError(f"Claude Code has ended: {error}") from error

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """What it says, one JSON object a line."""
        return self._messages()

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        process = self._process
        if process is None or process.stdout is None:
            raise ModelError("Claude Code was not started")
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError as error:
                raise ModelError("Claude Code sent a message that is too large") from error
            if not line:
                break
            if line.lstrip().startswith(b"{"):
                yield json.loads(line)
        code = await process.wait()
        if code:
            raise ModelError(f"Claude Code ended with exit code {code}: {self.errors[-500:]}")

    async def end_input(self) -> None:
        """Nothing more will be sent."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    async def close(self) -> None:
        """End it: gently at first, so that its session is whole on disk; then the whole group."""
        process, self._process = self._process, None
        if process is None:
            return
        children = _descendants(process.pid)
        try:
            if process.stdin is not None:
                process.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_END):
                    await process.wait()
        finally:
            end_group(process.pid)
            for child in children:  # its commands have groups of their own
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            await asyncio.shield(process.wait())
            if self._reading is not None:
                self._reading.cancel()
                await asyncio.gather(self._reading, return_exceptions=True)

    def is_ready(self) -> bool:
        """Whether something can be sent."""
        return self._process is not None and self._process.returncode is None


def _descendants(pid: int) -> list[int]:
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []
