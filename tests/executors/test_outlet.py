"""What a program in Claude Code's sandbox reaches: its worktree, the provider's messages, and what was allowed."""

from __future__ import annotations

import asyncio
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared import redaction
from shared.executors.base import TaskWork
from shared.executors.outlet import Outlet
from shared.guard.processes.process import Finished, run
from tests.support.guards import guarded
from tests.tasks.conftest import until

KEY = "sk-ant-api03-KeyOfTheCluster77Q"
ASK = """
import http.client, json, os, sys, urllib.parse
method, target, body, key = sys.argv[1:5]
there = urllib.parse.urlsplit(os.environ["ANTHROPIC_BASE_URL"])
line = http.client.HTTPConnection(there.hostname, there.port, timeout=20)
line.request(method, target, body, {"x-api-key": key or os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "1"})
answer = line.getresponse()
print(answer.status, answer.read().decode())
"""


class _Provider(http.server.BaseHTTPRequestHandler):
    got: list[tuple[str, dict[str, str], Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body)))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"said": "hello"}')

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def provider() -> Iterator[Any]:
    """A server that notes what it is sent."""
    _Provider.got = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Provider) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def here(work: TaskWork, provider: Any) -> Iterator[TaskWork]:
    """The task, with the key of the cluster."""
    redaction.hide(KEY)
    work.scratch.mkdir()
    given = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{provider.server_port}"}
    (work.path / "ask.py").write_text(ASK)
    yield replace(work, environment=given)


async def inside(work: TaskWork, outlet: Outlet, *argv: str) -> Finished:
    """A program in place of Claude Code."""
    words = outlet.wrap(list(argv), {"CLAUDE_CONFIG_DIR": str(work.scratch)}, [], [work.scratch])
    return await run(words, cwd=work.path, timeout=40, lock=work.lock)


async def ask(
    work: TaskWork, outlet: Outlet, target: str, body: Any = None, key: str = "", method: str = "POST"
) -> str:
    done = await inside(
        *(work, outlet, "/usr/bin/env", "python3", "ask.py", method, target, json.dumps(body or {}), key)
    )
    assert done.ok, done.stderr
    return done.stdout


@guarded("claude-provider")
async def test_the_key_is_not_inside_and_no_secret_goes_out(here: TaskWork, provider: Any) -> None:
    async with Outlet(here) as outlet:
        done = await inside(here, outlet, "/bin/sh", "-c", "env; cat /proc/[0-9]*/environ")
        assert KEY not in done.stdout and "ANTHROPIC_API_KEY=" in done.stdout
        said = await ask(
            here, outlet, "/v1/messages?beta=true", {"messages": [f"the file says {KEY}"], "n": 1}
        )
    assert said == '200 {"said": "hello"}\n'
    ((path, headers, body),) = _Provider.got
    assert (path, headers["x-api-key"], headers["anthropic-version"]) == ("/v1/messages?beta=true", KEY, "1")
    assert headers["host"] == f"127.0.0.1:{provider.server_port}"
    assert body == {"messages": ["the file says [hidden]"], "n": 1}


async def test_nothing_but_messages_goes_to_the_provider(here: TaskWork) -> None:
    async with Outlet(here) as outlet:
        for target in (
            "/v1/files",
            "/v1/messages/batches",
            "/v1/messages/../files",
            "//a.invalid/v1/messages",
        ):
            assert (await ask(here, outlet, target)).startswith("403 ")
        assert (await ask(here, outlet, "/v1/messages", method="GET")).startswith("403 ")
        assert (await ask(here, outlet, "/v1/messages", key="another")).startswith("401 ")
        assert (await ask(here, outlet, "/run/0123")).startswith("403 ")
    assert _Provider.got == []


@guarded("claude-sandbox")
async def test_a_program_inside_sees_its_worktree_and_nothing_beside_it(
    here: TaskWork, tmp_path: Path, provider: Any
) -> None:
    if here.sandbox.mode == "none":
        pytest.skip("there is no sandbox here")
    secret = tmp_path / "secret.txt"
    secret.write_text("CANARY")
    script = (
        f"ls {tmp_path}; cat {secret}; echo x > {secret}; echo x > {tmp_path}/new; echo ok > made; cat a.txt"
    )
    async with Outlet(here) as outlet:
        done = await inside(here, outlet, "/bin/sh", "-c", script)
    assert (here.path / "made").exists() and "one" in done.stdout
    assert "CANARY" not in done.stdout and "secret.txt" not in done.stdout
    assert secret.read_text() == "CANARY" and not (tmp_path / "new").exists()


async def test_a_program_inside_reaches_no_other_address(here: TaskWork) -> None:
    if here.sandbox.mode != "bwrap":
        pytest.skip("only bubblewrap closes the network")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)"
        async with Outlet(here) as outlet:
            done = await inside(here, outlet, "/usr/bin/env", "python3", "-c", code)
    assert done.exit_code != 0 and "refused" in done.stderr


async def test_a_command_that_was_allowed_is_run_outside_and_once(here: TaskWork) -> None:
    async with Outlet(here) as outlet:
        command = outlet.allow("echo out; echo err >&2; echo x > b.txt; env; exit 3", 20)
        done = await inside(
            here, outlet, "/bin/sh", "-c", f"{command}; echo code $?; {command}; echo then $?"
        )
    assert done.stdout.startswith("out\n") and "code 3" in done.stdout and "then 0" not in done.stdout
    assert "err" in done.stderr and (here.path / "b.txt").exists() and "ANTHROPIC" not in done.stdout


async def test_a_command_ends_with_its_time_and_with_who_waits_for_it(here: TaskWork) -> None:
    async with Outlet(here) as outlet:
        command = outlet.allow("sleep 30", 1)
        done = await inside(here, outlet, "/bin/sh", "-c", f"{command}; echo code $?")
        assert "code 124" in done.stdout and "ended after 1 s" in done.stderr
        beat = "while true; do date +%s%N > beat; sleep 0.05; done"
        waits = asyncio.create_task(inside(here, outlet, "/bin/sh", "-c", outlet.allow(beat, 60)))
        await until(lambda: (here.path / "beat").exists(), 30)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)

        def still() -> bool:
            before = (here.path / "beat").read_text()
            threading.Event().wait(0.3)
            return (here.path / "beat").read_text() == before

        await until(still, 20)
