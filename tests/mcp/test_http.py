"""A server at an address: the official library's own, killed and restarted, and ones that send too much."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ToolError
from shared.mcp.config import Server, server
from tests.mcp.conftest import QUICK, SURE, call, connected
from tests.support.valkey import free_port

OFFICIAL = """
import sys
from mcp.server import MCPServer
app = MCPServer("official")

@app.tool()
def echo(text: str) -> str:
    return text

app.run(transport="streamable-http", port=int(sys.argv[1]))
"""


def at(port: int, **fields: Any) -> Server:
    entry = {"url": f"http://127.0.0.1:{port}/mcp", **fields}
    return server("official", entry, Path("/home/mcp.json"), {})


@asynccontextmanager
async def official(port: int) -> AsyncIterator[None]:
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", OFFICIAL, str(port), stdout=quiet, stderr=quiet
    )
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        writer.close()
        yield
    finally:
        process.kill()
        await process.wait()


@contextmanager
def hostile(mode: str) -> Iterator[int]:
    """A server that begins well, and answers the first call as the mode says."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            self.send_error(405)

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            method = message["method"]
            if "id" not in message:
                self._answer(b"", 202)
            elif method == "initialize":
                info = {"serverInfo": {"name": "h", "version": "1"}, "capabilities": {"tools": {}}}
                self._result(message, {"protocolVersion": "2025-06-18", **info})
            elif method == "tools/list":
                tool = {"name": "echo", "inputSchema": {"type": "object"}}
                self._result(message, {"tools": [tool]})
            elif method == "tools/call":
                self._hurt()
            else:
                error = {"code": -32601, "message": "no"}
                self._answer(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())

        def _hurt(self) -> None:
            kind = "text/event-stream" if mode == "events" else "application/json"
            self.send_response(200)
            self.send_header("content-type", kind)
            if mode == "packed":
                self.send_header("content-encoding", "gzip")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            part = b"x" * 1024 * 1024
            if mode == "events":
                part = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/x"}\n\n' * 2000
            try:
                for _ in range(100):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            except OSError:
                self.close_connection = True

        def _result(self, message: dict[str, Any], result: dict[str, Any]) -> None:
            self._answer(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

        def _answer(self, body: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield running.server_address[1]
    finally:
        running.shutdown()
        running.server_close()


async def test_a_server_of_the_official_library_is_used_killed_and_used_again() -> None:
    port = free_port()
    async with connected(at(port)) as link:
        await asyncio.wait_for(link.tried.wait(), SURE)
        assert (link.state, link.why) == ("lost", "nothing answers at its address")
        async with official(port):
            assert await call(link, "echo", "one") == "one"
        async with official(port):
            assert await call(link, "echo", "two") == "two"


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("huge", "more than 4 MiB"),
        ("events", "more than 2000 messages"),
        ("packed", "packed its answer"),
    ],
)
async def test_an_answer_that_is_too_much_is_a_clear_error_and_the_server_stays_usable(
    mode: str, why: str
) -> None:
    with hostile(mode) as port:
        async with connected(at(port, timeout=20), QUICK) as link:
            with pytest.raises(ToolError, match=why):
                await call(link, "echo")
            await link.present()
