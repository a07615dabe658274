"""Remotes of git: looked up once, gone to at the address that was judged, from the sandbox, and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.guard.git import route
from shared.guard.git.checkout import Checkout
from shared.guard.git.commands import Git
from shared.guard.git.refs import Target, check_remote
from shared.guard.sandbox.addresses import PUBLIC, Reach, pin
from shared.guard.sandbox.sandbox import Sandbox
from tests.attacks.ground import CANARY, Ground, git
from tests.attacks.test_addresses import Server
from tests.support.guards import guarded

NAME = "code.company.invalid"

PRIVATE = [
    *("10.0.0.5", "10.255.255.254", "172.16.0.1", "172.31.255.1", "192.168.1.1", "100.64.0.1", "100.127.0.1"),
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "169.254.1.1", "169.254.169.254", "224.0.0.5", "239.1.1.1"),
    *("198.18.0.1", "192.0.0.8", "240.0.0.1", "255.255.255.255"),
    *("::1", "::", "fc00::1", "fd12:3456::1", "fe80::1", "ff02::1", "::ffff:10.0.0.5", "::ffff:127.0.0.1"),
    *("64:ff9b::10.0.0.5", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:a00:5::", "::10.0.0.5", "fd00:ec2::254"),
]  # fmt: skip


class Names:
    """A resolver of ours: what it was asked, and what it answers, the last answer for good."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[str]()

    async def __call__(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        return [self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]] if self.answers else []


def granted(names: Names, *hosts: str) -> Reach:
    return Reach(hosts=frozenset(hosts), resolve=names)


def remote(root: Path, url: str) -> None:
    git(root, "remote", "remove", "origin")
    git(root, "remote", "add", "origin", url)


async def _is_refused(url: str, reach: Reach) -> bool:
    try:
        await route.lead([url], reach)
    except ToolError:
        return True
    return False


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """On loopback, where nothing of the web is."""
    made = Server(0)
    listening = await asyncio.start_server(made.hear, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    listening.close()
    await listening.wait_closed()


# Private networks


@pytest.mark.parametrize("place", PRIVATE)
async def test_a_name_that_leads_into_a_private_network_is_refused_by_git_and_by_http(place: str) -> None:
    for url in (f"https://{NAME}/x", f"git@{NAME}:x.git", f"ssh://git@{NAME}:2222/x"):
        assert await _is_refused(url, Reach(resolve=Names(place)))
    with pytest.raises(ToolError, match="it leads to"):
        await pin(NAME, Reach(resolve=Names(place)))


@pytest.mark.parametrize("place", PRIVATE)
def test_so_is_such_an_address_that_is_written_out_without_any_look_up(place: str) -> None:
    host = f"[{place}]" if ":" in place else place
    for url in (f"https://{host}/x", f"git@{host}:x.git"):
        with pytest.raises(ToolError, match="cannot be used as a remote"):
            check_remote(url)


async def test_one_private_address_among_public_ones_is_enough() -> None:
    async def both(_name: str) -> Sequence[str]:
        return ["93.184.216.34", "10.0.0.5"]

    assert await _is_refused(f"https://{NAME}/x", Reach(resolve=both))


@guarded("private-network")
async def test_git_sends_nothing_to_this_machine_for_a_name_that_leads_there(
    builder: Ground, server: Server
) -> None:
    remote(builder.root, f"http://{NAME}:{server.port}/x")
    with contextlib.suppress(ToolError):
        await Git(builder.root, builder.sandbox).fetch(reach=Reach(resolve=Names("127.0.0.1")))
    assert server.heard == []


@pytest.mark.parametrize(
    ("host", "place"),
    [("10.0.0.5", ""), (NAME, "192.168.7.7"), (NAME.upper(), "fd12::1"), ("localhost", "127.0.0.1")],
)
async def test_a_host_that_its_owner_named_may_lie_there(host: str, place: str) -> None:
    assert not await _is_refused(f"https://{host}/x", granted(Names(place), host.lower()))


async def test_but_not_on_the_machines_own_link_or_at_its_cloud() -> None:
    for place in ("169.254.169.254", "fe80::1", "100.100.100.200", "0.0.0.0", "224.0.0.1"):
        assert await _is_refused(f"https://{NAME}/x", granted(Names(place), NAME))


async def test_gits_own_protocol_is_refused_unless_its_host_was_named() -> None:
    with pytest.raises(ToolError, match="says nothing of who answers"):
        check_remote(f"git://{NAME}/x")
    assert check_remote(f"git://{NAME}/x", granted(Names(), NAME))


# One look-up


async def test_a_name_is_looked_up_once_for_each_use_and_never_before_leave(
    builder: Ground, server: Server
) -> None:
    names = Names("127.0.0.1")
    reach = granted(names, NAME)
    remote(builder.root, f"http://{NAME}:{server.port}/x")
    at = Git(builder.root, builder.sandbox)
    await at.can_push("main", reach=reach)
    await at.outgoing("main")
    await at.push_address()
    check_remote(f"http://{NAME}/x", reach)
    assert names.asked == [], "whether a push is possible is known without"
    with contextlib.suppress(ToolError):
        await at.fetch(reach=reach)
    assert names.asked == [NAME]
    with contextlib.suppress(ToolError):
        await at.push("main", reach=reach)
    assert names.asked == [NAME, NAME]
    with contextlib.suppress(ToolError):
        await Checkout(builder.root.parent / "clone", builder.sandbox).clone(
            f"http://{NAME}:{server.port}/x", "", reach
        )
    assert len(names.asked) == 3


async def test_a_name_that_leads_nowhere_is_told_without_git() -> None:
    with pytest.raises(ToolError, match="leads nowhere"):
        await route.lead([f"https://{NAME}/x"], Reach(resolve=Names()))


@guarded("pinned-address")
async def test_git_goes_to_the_address_that_was_judged_whatever_the_name_leads_to_then(
    builder: Ground, server: Server
) -> None:
    """`localhost` stands for a name whose second answer is another one: for git it leads to 127.0.0.1."""
    judged = Server(0)
    async with await asyncio.start_server(judged.hear, "127.0.0.2", server.port):
        remote(builder.root, f"http://localhost:{server.port}/x")
        with contextlib.suppress(ToolError):
            await Git(builder.root, builder.sandbox).fetch(reach=granted(Names("127.0.0.2"), "localhost"))
    assert server.heard == []
    assert judged.heard and f"Host: localhost:{server.port}".encode() in judged.heard[0]


async def test_ssh_goes_to_that_address_too_and_believes_the_key_of_the_name() -> None:
    led = await route.lead([f"git@{NAME}:team/x.git"], Reach(resolve=Names("93.184.216.34", "127.0.0.1")))
    command = led.options[1]
    assert (
        led.ssh
        and led.options[0] == "-c"
        and command.startswith("core.sshCommand=ssh -F none -oBatchMode=yes ")
    )
    assert f"-oHostName=93.184.216.34 -oHostKeyAlias={NAME} " in command
    led = await route.lead([f"ssh://git@{NAME}:2222/x"], Reach(resolve=Names("2606:4700::1")))
    assert f"-oHostName=2606:4700::1 '-oHostKeyAlias=[{NAME}]:2222'" in led.options[1]


# In the sandbox


@pytest.fixture
def hosted(tmp_path: Path, pattern: Path) -> Iterator[str]:
    """A repository on a web server of loopback; the port."""
    bare = tmp_path / "web" / "x.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(pattern), str(bare)], check=True, capture_output=True)
    git(bare, "update-server-info")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        SimpleHTTPRequestHandler.log_message = lambda *_args: None  # type: ignore[method-assign]
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield str(serving.server_port)
        serving.shutdown()
        thread.join(5)


async def test_a_clone_is_made_from_a_name_that_only_the_pin_knows(
    hosted: str, tmp_path: Path, strongest: Sandbox
) -> None:
    made = Checkout(tmp_path / "clone", strongest)
    await made.clone(f"http://{NAME}:{hosted}/x.git", "main", granted(Names("127.0.0.1"), NAME))
    assert (tmp_path / "clone" / "src" / "a.py").read_text() == "a = 1\n"
    await made.fetch(reach=granted(Names("127.0.0.1"), NAME))


@guarded("git-sandbox")
async def test_what_a_server_makes_git_run_sees_the_repository_and_nothing_else(
    builder: Ground, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a flaw in git would do it: a command on the way to the server."""
    look = f"core.sshCommand=sh -c 'cat {canary} {canary.parent}/* > seen; env >> seen' --"

    def flawed(_one: Target, _places: object) -> list[str]:
        return ["-c", look]

    monkeypatch.setattr(route, "_pinned", flawed)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    remote(builder.root, f"git@{NAME}:x.git")
    with pytest.raises(ToolError):
        await Git(builder.root, builder.sandbox).fetch(reach=Reach(resolve=Names("93.184.216.34")))
    assert CANARY not in (builder.root / "seen").read_text()


async def test_the_owners_proxy_is_asked_by_name_and_its_password_is_no_argument(
    builder: Ground, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://ada:correcthorse@127.0.0.1:{server.port}")
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    started = list[str]()
    real = asyncio.get_running_loop().subprocess_exec

    async def watched(protocol: object, *argv: str, **more: object) -> object:
        started.extend(argv)
        return await real(protocol, *argv, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio.get_running_loop(), "subprocess_exec", watched)
    names = Names("127.0.0.1")
    remote(builder.root, f"https://{NAME}/x")
    with pytest.raises(ToolError):
        await Git(builder.root, builder.sandbox).fetch(reach=Reach(resolve=names))
    assert server.heard[0].startswith(f"CONNECT {NAME}:443 ".encode())
    assert names.asked == [] and started
    assert not any("correcthorse" in word for word in started)


async def test_where_the_sandbox_cannot_lend_the_agent_ssh_runs_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    led = await route.lead([f"git@{NAME}:x"], Reach(resolve=Names("93.184.216.34")))
    assert led.sockets() == ["/run/agent"] and led.variables()["SSH_AUTH_SOCK"] == "/run/agent"
    assert led.confined(Sandbox("bwrap", "")) and not led.confined(Sandbox("landlock", ""))
    web = await route.lead([f"https://{NAME}/x"], Reach(resolve=Names("93.184.216.34")))
    assert (
        web.sockets() == []
        and web.confined(Sandbox("landlock", ""))
        and not web.confined(Sandbox("none", ""))
    )


# The repository's own configuration


HOSTILE = [
    *(("http.curloptResolve", "x.example:80:127.0.0.1"), ("http.sslVerify", "false"), ("http.sslCAInfo", "/tmp/ca")),
    *(("http.proxy", "http://x"), ("http.extraHeader", "X: y"), ("http.https://github.com/.proxy", "http://x")),
    *(("http.https://github.com/.sslVerify", "false"), ("http.followRedirects", "true"), ("http.cookieFile", "/x")),
    *(("http.pinnedPubkey", "x"), ("http.sslBackend", "x"), ("http.sslCAPath", "/tmp"), ("http.delegation", "always")),
    *(("url.http://127.0.0.1/.insteadOf", "https://github.com/"), ("url.ssh://evil/.pushInsteadOf", "https://github.com/")),
    *(("https.proxy", "x"), ("remote.origin.proxy", "http://x"), ("http.userAgent", "x"), ("http.emptyAuth", "true")),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), HOSTILE)
async def test_a_configuration_that_says_where_http_goes_or_whom_it_believes_is_refused(
    key: str, value: str, builder: Ground
) -> None:
    git(builder.root, "config", key, value)
    with pytest.raises(ToolError, match="not trusted"):
        await Git(builder.root, builder.sandbox).head()


async def test_sizes_and_patience_are_the_repositorys_own(builder: Ground) -> None:
    for key, value in (
        ("http.postBuffer", "524288000"),
        ("http.lowSpeedLimit", "1"),
        ("http.lowSpeedTime", "9"),
    ):
        git(builder.root, "config", key, value)
    assert await Git(builder.root, builder.sandbox).head()


def test_public_is_what_is_meant_where_nothing_is_said() -> None:
    assert PUBLIC.hosts == frozenset() and not PUBLIC.local
