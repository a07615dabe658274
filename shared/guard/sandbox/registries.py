"""The way of a sandboxed command to package registries, and to nowhere else.

The command keeps a network of its own with nobody in it. In there one address leads, by a socket of ours, to a proxy
that opens tunnels (CONNECT) to the hosts that the owner named, at addresses that are judged like every other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from shared import failpoints, log
from shared.errors import PromptDockError, ToolError
from shared.guard.sandbox import addresses, inside
from shared.guard.sandbox.addresses import Reach
from shared.guard.sandbox.sandbox import Sandbox

_PORT = 8378  # in the sandbox's own network, where nobody else is
_HEAD, _PIECE = 16 * 1024, 64 * 1024  # bytes
_SECONDS = 30.0  # until a request is read, and a host is reached
_TUNNELS = 64
# The certificates of this machine also for programs that bring their own: its owner may have added some.
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_TRUST = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO")
_QUIET = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "npm_config_update_notifier": "false",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "CI": "true",
}


class RegistryProxy:
    """Open between entering and leaving. `hosts` are `name` or `name:port`, `reach` says which may be private."""

    def __init__(self, hosts: Collection[str], reach: Reach) -> None:
        self._hosts = {_place(host) for host in hosts}
        self._reach = reach
        self._folder = Path()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused: dict[str, str] = {}  # what was asked for and not opened, with the reason

    async def __aenter__(self) -> RegistryProxy:
        self._folder = Path(tempfile.mkdtemp(prefix="promptdock-registries-"))
        self._server = await asyncio.start_unix_server(self._take, str(self._socket), limit=_HEAD)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(shutil.rmtree, self._folder, True)

    @property
    def _socket(self) -> Path:
        return self._folder / "way"

    def wrap(
        self, sandbox: Sandbox, argv: Sequence[str], root: Path, environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """The command line that runs `argv` in `root` with this way out; ToolError where the sandbox has none."""
        if sandbox.mode != "bwrap":
            raise ToolError(
                "packages cannot be installed here",
                f"only bubblewrap can leave one way open and no other, and commands run under {sandbox.mode}",
                "install bubblewrap, or install the packages by hand",
            )
        proxy = f"http://{inside.HERE}:{_PORT}"
        names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
        given = {**dict.fromkeys(names, proxy), **_QUIET, **(environment or {})}
        read = [Path(inside.__file__).resolve(), self._folder / "plan"]
        if _CERTIFICATES.is_file():
            given |= dict.fromkeys(_TRUST, str(_CERTIFICATES))
        plan = {"socket": str(self._socket), "port": _PORT, "token": "", "environment": given}
        read[1].touch(mode=0o600)
        read[1].write_text(json.dumps(plan))
        python = [str(Path(sys.executable).resolve()), "-I", "-S", str(read[0]), "start", str(read[1])]
        return sandbox.wrap([*python, *argv], root, writable=True, extra_read=read, sockets=[self._socket])

    # -- the proxy -------------------------------------------------------------------------------------------

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= _TUNNELS:
            writer.close()
            return
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, ValueError, EOFError, TimeoutError, asyncio.LimitOverrunError) as error:
            log.get().debug("A tunnel to a registry ended", why=repr(error))
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_SECONDS):
            first = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[0]
        method, target, _ = first.split(" ")
        try:
            far = await self._open(method, target)
        except (PromptDockError, OSError, TimeoutError) as error:
            why = error.why if isinstance(error, PromptDockError) else "it does not answer"
            self.refused.setdefault(target[:200], why)
            writer.write(f"HTTP/1.1 403 {why.encode('ascii', 'replace').decode()}\r\n\r\n".encode())
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 -\r\n\r\n")
        ways = [asyncio.create_task(_pass(reader, far[1])), asyncio.create_task(_pass(far[0], writer))]
        try:
            await asyncio.wait(ways)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            far[1].close()

    async def _open(self, method: str, target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if method != "CONNECT":
            raise ToolError("nothing is passed on", "packages come by https alone")
        host, port = _place(target)
        if (host, port) not in self._hosts and not failpoints.without("package-hosts"):
            raise ToolError("nothing is passed on", "it is no package registry that PACKAGE_HOSTS names")
        async with asyncio.timeout(_SECONDS):
            found = await addresses.pin(host, self._reach)
            for last, address in enumerate(found, 1):
                try:
                    return await asyncio.open_connection(str(address), port)
                except OSError:
                    if last == len(found):
                        raise
        raise AssertionError("a name that is pinned has an address")


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _place(text: str) -> tuple[str, int]:
    """`name:port`, or a name at the port of https."""
    name, colon, port = text.strip().rpartition(":")
    if colon and port.isdigit():
        return addresses.plain(name), int(port)
    return addresses.plain(text.strip()), 443
