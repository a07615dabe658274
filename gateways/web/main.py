"""The process of the page: settings, its socket, uvicorn, and an end that lets readers go first."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import signal
import socket
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

import uvicorn

from gateways.web.app import create_app
from gateways.web.events import Hub
from shared import log
from shared.client.local import web_address
from shared.errors import ConfigurationError, PromptDockError
from shared.settings import Settings, load

_UNREAD = 256 * 1024  # bytes
_DRAIN = 5  # seconds that requests which are under way have at the end


class _Server(uvicorn.Server):
    """Streams do not end by themselves: their readers are let go first, and come again."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Without raising them again at the end: who was asked to end, and did, ends with 0."""
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self.handle_exit, one, None)
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._hub.end()
        await super().shutdown(sockets)


def bound(host: str, port: int, other: bool, before: int = 0) -> socket.socket:
    """The socket to listen on; where the port is taken, and `other` is wanted, the next free one.

    `before` is where one that was killed has listened: pages that are open ask there. ConfigurationError where there
    is none.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise ConfigurationError(
            f"the page cannot listen on {host!r}", str(error), "correct PROMPTDOCK_WEB_HOST"
        ) from error
    for one in ([before] if before else []) + ([port, 0] if other else [port]):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Of each connection: what a reader who does not read may keep waiting in the system.
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD)
        try:
            found.bind((host, one))
            found.listen(1024)
            found.setblocking(False)
            return found
        except OSError as error:
            found.close()
            if one == before != 0:
                continue
            if error.errno != errno.EADDRINUSE or one == 0 or not other:
                raise ConfigurationError(
                    f"the page cannot listen on {host}:{port}",
                    error.strerror or str(error),
                    "end what listens there, or set PROMPTDOCK_WEB_PORT",
                ) from error
    raise AssertionError("a free port was asked for")


async def serve(settings: Settings, other: bool = False) -> None:
    """Listen until told to end. `other`: on another port where ours is taken."""
    log.get().info("Web starting")
    app = create_app(settings)
    before = web_address.left(settings.home) if other else 0
    listening = bound(settings.web_host, settings.web_port, other, before)
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = _Server(config, app.state.hub)
    with web_address.kept(settings.home, settings.web_host, port) as url:
        log.get().info("Web ready", url=url)
        await server.serve([listening])
    if not server.started:
        raise PromptDockError("the page could not start", "", "promptdock logs web")


def _run(work: Coroutine[Any, Any, None]) -> None:
    """On uvloop, where it is."""
    try:
        import uvloop
    except ImportError:  # not on Windows
        asyncio.run(work)
    else:
        uvloop.run(work)


def main() -> None:
    """The command line of `python -m gateways.web`; exit codes as in docs/wire.md."""
    parser = argparse.ArgumentParser("python -m gateways.web", description="Serve the page and the API.")
    parser.add_argument(
        "--other-port", action="store_true", help="listen on a free port where the one that is set is taken"
    )
    given = parser.parse_args()
    try:
        settings = load()
        log.setup(settings.log_level)
        log.hide(*settings.secrets())
        _run(serve(settings, given.other_port))
    except PromptDockError as error:
        log.get().error(error.what, why=error.why, fix=error.fix)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(0)


__all__ = ["bound", "main", "serve"]
