"""Addresses that a hook would ask: only hosts that the owner named, at the address that was looked at, no further."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.errors import Denied, ToolError
from shared.guard.git.checkout import Checkout
from shared.guard.git.commands import Git
from shared.guard.sandbox.sandbox import Sandbox
from shared.hooks.steps import digest
from shared.settings import Settings
from shared.store.base import Store
from shared.store.origin import PERSON
from shared.store.records import Hook, HookRun, Project
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools.execute import ToolExecutor
from shared.turns.outbox import Outbox
from shared.worker.permissions.authority import Authority
from shared.worker.services.hook_gate import HookGate, HookTools
from tests.attacks.ground import HOSTILE, REGISTRY, Ground

NAMED = "service.example"


class Server:
    """A page on loopback that keeps what it was asked; `answer` is what it says."""

    def __init__(self, port: int) -> None:
        self.port, self.heard = port, list[bytes]()
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server(0)
    listening = await asyncio.start_server(made.hear, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    listening.close()
    await listening.wait_closed()


class Lookups:
    """Answers of a name server, the last of them for good."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[str]()
        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", self._look)

    async def _look(self, host: str | bytes, port: Any, **_more: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else host
        found = name
        if name == NAMED:
            self.asked.append(name)
            found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, int(port)))]


def gate(*hosts: str) -> HookGate:
    async def put(_rows: list[Any]) -> None:
        return None

    named = frozenset(Settings(_env_file=None, HOOK_HOSTS=",".join(hosts)).hook_hosts)
    store, outbox = cast(Store, None), cast(Outbox, SimpleNamespace(put=put))
    sandbox, repos = Sandbox("none", ""), cast(Mirrors, None)
    authority = Authority(store, Path("/nowhere"), "", sandbox.offline)
    tools = HookTools(ToolExecutor(REGISTRY), store, outbox, authority, sandbox, repos, named)
    project = Project(slug="default", name="Default")
    allowed = {"by": "ada", "digest": digest([], project.slug)}
    hook = Hook(
        project_id=project.id, slug="h", name="h", trigger={}, prompt_template="x", allowed=allowed,
        origin={"by": PERSON},
    )  # fmt: skip
    run = HookRun(hook_id=hook.id, project_id=project.id, trigger="manual")
    return HookGate(tools, hook, run, project)


def get(at: HookGate, url: str) -> Any:
    return at("http_get", {"url": url, "timeout": 5})


@pytest.mark.parametrize("url", [*HOSTILE["addresses"], "http://127.0.0.1.nip.io/"], ids=ascii)
async def test_an_address_that_nobody_named_is_not_asked(url: str, server: Server) -> None:
    with pytest.raises(Denied, match="not allowed in a hook"):
        await get(gate(NAMED), url.replace(":6379", f":{server.port}"))
    assert server.heard == []


@pytest.mark.parametrize(
    "url",
    [
        "http://service.example\r\nHost: x/",
        "http://service.example\\@evil.example/",
        "http://ada@service.example/",
        "http://:@service.example/",
        "gopher://service.example/_FLUSHALL",
        "file://service.example/etc/passwd",
        "http://service.example/a b",
        "http://service.example/\u2028",
    ],
    ids=ascii,
)
async def test_nor_is_a_named_one_in_a_spelling_that_means_something_else(
    url: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lookups(monkeypatch, "127.0.0.1")
    with pytest.raises((Denied, ToolError)):
        await get(gate(NAMED), url)
    assert server.heard == []


@pytest.mark.parametrize(
    "place",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fe80::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "255.255.255.255",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "::a9fe:a9fe",
        "fd00:ec2::254",
        "100.100.100.200",
    ],
)
async def test_a_name_that_leads_to_no_place_of_the_web_is_not_asked(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Lookups(monkeypatch, place)
    with pytest.raises(ToolError, match="cannot be asked"):
        await get(gate(NAMED), f"http://{NAMED}/latest/meta-data/")


async def test_a_name_that_leads_elsewhere_the_second_time_is_asked_where_it_was_looked_at(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups = Lookups(monkeypatch, "127.0.0.1", "169.254.169.254")
    found = await get(gate(NAMED), f"http://{NAMED}:{server.port}/page?x=1")
    assert (found["status"], found["body"]) == (200, "ok")
    assert lookups.asked == [NAMED], "it is looked up once"
    (request,) = server.heard
    assert (
        request.startswith(b"GET /page?x=1 ") and f"\r\nHost: {NAMED}:{server.port}\r\n".encode() in request
    )


@pytest.mark.parametrize(
    "place", ["127.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1", "2002:7f00:1::", "100.100.100.200"]
)
async def test_git_asks_no_name_that_leads_to_this_machine(
    place: str, builder: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups = Lookups(monkeypatch, place)
    for url in (f"http://{NAMED}/x", f"git@{NAMED}:x.git", f"ssh://{NAMED}/x"):
        clone = tmp_path / "clone"
        with pytest.raises(ToolError, match="cannot be used as a remote"):
            await Checkout(clone, builder.sandbox).clone(url)
        assert not clone.exists()
        config = f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n'
        (builder.root / ".git" / "config").write_text(config)
        with pytest.raises(ToolError, match="cannot be used as a remote"):
            await Git(builder.root, builder.sandbox).fetch()
    assert len(lookups.asked) == 6


async def test_a_page_is_not_unpacked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes could unpack to more than there is memory."""
    Lookups(monkeypatch, "127.0.0.1")
    packed = gzip.compress(b"x" * 50_000_000, 9)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    server.answer = head.encode() + packed
    found = await get(gate(NAMED), f"http://{NAMED}:{server.port}/")
    assert len(found["body"]) <= len(packed) and b"\r\nAccept-Encoding: identity\r\n" in server.heard[0]


async def test_a_redirect_is_told_and_not_followed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    Lookups(monkeypatch, "127.0.0.1")
    server.answer = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
    found = await get(gate(NAMED), f"http://{NAMED}:{server.port}/")
    assert found["status"] == 302 and len(server.heard) == 1
