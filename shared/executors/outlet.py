"""The one way out of Claude Code's sandbox: to the provider's Messages API, and to commands that were allowed.

A small HTTP server on a socket of ours. What comes for the provider goes to the configured address and no other,
for messages and nothing else, with the key that is added here and without the cluster's secrets; so the key
is not in the sandbox at all. A command is run here, in a sandbox of its own, once for each time it was allowed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared import failpoints, log
from shared.errors import PromptDockError
from shared.executors.base import TaskWork
from shared.guard.processes.process import Finished, run
from shared.guard.processes.reserve import Reserve
from shared.guard.sandbox import inside
from shared.redaction import concealed

PROVIDER = "https://api.anthropic.com"
_PORT = 8377  # in the sandbox's own network, where nobody else is
_ALLOWED = ("/v1/messages", "/v1/messages/count_tokens")
_HEAD, _BODY = 64 * 1024, 64 * 1024 * 1024  # bytes of a request
_SECONDS = 900.0  # of one request
_OURS = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "x-api-key", "authorization", "keep-alive"}
)
_THEIRS = frozenset({"connection", "content-length", "transfer-encoding", "keep-alive"})


class Outlet:
    """Open between entering and leaving; `wrap` makes the command line of a Claude Code that goes through it."""

    def __init__(self, work: TaskWork) -> None:
        self._work = work
        self._token = secrets.token_urlsafe(32)
        self._commands: dict[str, tuple[str, float]] = {}
        self._folder = Path()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._client: Any = None
        self._apart = work.sandbox.mode == "bwrap" and not failpoints.without("claude-sandbox")

    async def __aenter__(self) -> Outlet:
        import httpx

        self._folder = Path(tempfile.mkdtemp(prefix="promptdock-claude-"))
        if self._apart:
            self._server = await asyncio.start_unix_server(self._take, str(self._socket), limit=_HEAD)
        else:
            self._server = await asyncio.start_server(self._take, inside.HERE, 0, limit=_HEAD)
        self._client = httpx.AsyncClient(follow_redirects=False, timeout=httpx.Timeout(_SECONDS, connect=30))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()
        await asyncio.to_thread(shutil.rmtree, self._folder, True)

    @property
    def _socket(self) -> Path:
        return self._folder / "outlet"

    @property
    def _plan(self) -> Path:
        return self._folder / "plan"

    def wrap(
        self, argv: list[str], environment: Mapping[str, str], programs: list[str], write: list[Path]
    ) -> list[str]:
        """The command line in the sandbox; ToolError where there is none for it."""
        assert self._server is not None
        port = _PORT if self._apart else int(self._server.sockets[0].getsockname()[1])
        given = dict(environment)
        if not failpoints.without("claude-provider"):
            given |= {"ANTHROPIC_API_KEY": self._token, "ANTHROPIC_BASE_URL": f"http://{inside.HERE}:{port}"}
        socket = str(self._socket) if self._apart else ""
        plan = {"socket": socket, "port": port, "token": self._token, "environment": given}
        self._plan.touch(mode=0o600)
        self._plan.write_text(json.dumps(plan))
        command = [*self._python("start"), *argv]
        if failpoints.without("claude-sandbox"):
            return command
        script = Path(inside.__file__).resolve()
        read = [one for name in programs for one in (Path(name), Path(name).resolve())]
        return self._work.sandbox.wrap(
            command,
            self._work.path,
            writable=True,
            network=not self._apart,  # Landlock cannot leave one address open; files it confines all the same
            extra_read=[*read, script, self._plan],
            extra_write=write,
            sockets=[self._socket] if self._apart else (),
        )

    def allow(self, command: str, seconds: float) -> str:
        """A command was allowed: what Claude Code's shell runs in its place, once."""
        name = secrets.token_hex(16)
        self._commands[name] = (command, seconds)
        return shlex.join([*self._python("run"), name])

    def _python(self, what: str) -> list[str]:
        """The program itself, not the link of a virtual environment, which is not there inside."""
        script = str(Path(inside.__file__).resolve())
        return [str(Path(sys.executable).resolve()), "-I", "-S", script, what, str(self._plan)]

    # -- the server ------------------------------------------------------------------------------------------

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            async with asyncio.timeout(_SECONDS):
                await self._answer(reader, writer)
        except (OSError, ValueError, EOFError, TimeoutError, asyncio.LimitOverrunError) as error:
            log.get().debug("A request of Claude Code was not answered", why=repr(error))
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        parts = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in parts}
        path = target.partition("?")[0]
        if not hmac.compare_digest(headers.get("x-api-key", "").encode(), self._token.encode()):
            await _refuse(writer, 401, "this is not Claude Code's key")
        elif method == "POST" and path.startswith("/run/"):
            await self._run(path.removeprefix("/run/"), reader, writer)
        elif method == "POST" and path in _ALLOWED and "content-length" in headers:
            length = int(headers["content-length"])
            if not 0 <= length <= _BODY:
                await _refuse(writer, 413, "the request is too large")
                return
            await self._forward(target, headers, await reader.readexactly(length), writer)
        else:
            await _refuse(writer, 403, f"{method} {path[:100]} is not let through")

    async def _forward(
        self, target: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter
    ) -> None:
        import httpx

        given = self._work.environment
        sent = {name: value for name, value in headers.items() if name not in _OURS}
        if key := given.get("ANTHROPIC_API_KEY"):
            sent["x-api-key"] = key
        address = given.get("ANTHROPIC_BASE_URL", PROVIDER).rstrip("/") + target
        asked = json.loads(body)
        if (redacted := concealed(asked)) is not asked:
            body = json.dumps(redacted, ensure_ascii=False).encode()
        try:
            async with self._client.stream("POST", address, headers=sent, content=body) as answer:
                lines = [f"{n}: {v}" for n, v in answer.headers.items() if n.lower() not in _THEIRS]
                writer.write(_head(answer.status_code, lines))
                async for piece in answer.aiter_raw():
                    writer.write(piece)
                    await writer.drain()
        except httpx.HTTPError as error:
            log.get().warning(
                "The provider did not answer Claude Code", why=f"{type(error).__name__}: {error}"
            )
            with contextlib.suppress(OSError):
                await _refuse(writer, 502, "the provider cannot be reached")

    async def _run(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if name not in self._commands:
            await _refuse(writer, 403, "no such command was allowed")
            return
        running = asyncio.create_task(self._ran(*self._commands.pop(name)))
        gone = asyncio.create_task(reader.read(1))  # who waits for it was ended
        try:
            await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                writer.write(_head(200, ["content-type: application/json"]) + running.result())
                await writer.drain()
        finally:
            for task in (running, gone):
                task.cancel()
            await asyncio.gather(running, gone, return_exceptions=True)

    async def _ran(self, command: str, seconds: float) -> bytes:
        work = self._work
        try:
            argv = work.sandbox.wrap(["bash", "-c", command], work.path, writable=True)
            done = await run(
                argv, cwd=work.path, timeout=seconds, lock=work.lock, reserve=Reserve.of(work.path)
            )
        except PromptDockError as error:
            done = Finished(126, "", f"{error}\n", False, False, 0)
        late = f"\nit was ended after {seconds:g} s\n" if done.timed_out else ""
        code = 124 if done.timed_out else 128 - done.exit_code if done.exit_code < 0 else done.exit_code
        fields = {"stdout": done.stdout, "stderr": done.stderr + late, "exit_code": code}
        return json.dumps(fields).encode("utf-8", "replace")


def _head(status: int, lines: list[str]) -> bytes:
    """The end of the connection ends the answer."""
    return "\r\n".join([f"HTTP/1.1 {status} -", *lines, "connection: close", "", ""]).encode(
        "latin-1", "replace"
    )


async def _refuse(writer: asyncio.StreamWriter, status: int, why: str) -> None:
    body = {"type": "error", "error": {"type": "permission_error", "message": why}}
    writer.write(_head(status, ["content-type: application/json"]) + json.dumps(body).encode())
    await writer.drain()
