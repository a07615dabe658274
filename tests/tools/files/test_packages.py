"""Packages are installed from registries alone, in a real sandbox, from a registry on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from shared.errors import ToolError
from shared.guard.permissions.presets import preset
from shared.guard.permissions.touching import spelled
from shared.guard.sandbox.addresses import Reach
from shared.guard.sandbox.sandbox import Sandbox
from shared.settings import Settings
from shared.store.base import Store
from shared.tools.context import Context, PackageRegistries, Root, TaskWorktree
from shared.tools.files import packages
from shared.tools.registry import Registry
from tests.support.guards import guarded
from tests.tools import ground

REGISTRY = Registry([packages.category])
HOST = "127.0.0.1"
# What a package manager does: a tunnel by the proxy that its environment names, and a request through it.
FETCH = """
import http.client, os, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
line = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)
line.set_tunnel(sys.argv[1], int(sys.argv[2]))
line.request("GET", "/left-pad")
open("package", "wb").write(line.getresponse().read())
"""


@pytest.fixture
async def registry() -> AsyncIterator[int]:
    """The port of a server that has one package."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError, OSError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 -\r\ncontent-length: 7\r\nconnection: close\r\n\r\npackage")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, HOST, 0)
    yield int(server.sockets[0].getsockname()[1])
    server.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return ground.repository(tmp_path / "shop", {"requirements.txt": "left-pad\n"}).path


def _context(workspace: Path, hosts: set[str], private: bool = True) -> Context:
    registries = PackageRegistries(frozenset(hosts), Reach(frozenset({HOST} if private else ())))
    return Context(
        agent="backend",
        session_id="s",
        turn_id="t",
        store=cast(Store, None),
        roots={"shop": Root("shop", workspace, writable=True)},
        sandbox=Sandbox.probe(),
        worktree=TaskWorktree(registries=registries),
    )


async def _install(context: Context, command: str, timeout: int = 30) -> dict[str, Any]:
    if context.sandbox is not None and not context.sandbox.offline:
        pytest.skip("bubblewrap does not work here")
    tool = REGISTRY.get("install_packages")
    return await tool.function(context, **tool.check({"command": command, "timeout": timeout}))


def _fetch(port: int, host: str = HOST) -> str:
    return f"python3 -c {shlex.quote(FETCH)} {host} {port}"


async def test_a_command_gets_a_package_from_a_registry_that_the_owner_named(
    workspace: Path, registry: int
) -> None:
    done = await _install(_context(workspace, {f"{HOST}:{registry}"}), _fetch(registry))
    assert done["exit_code"] == 0, done
    assert (workspace / "package").read_text() == "package" and "not_reached" not in done


@guarded("package-hosts")
async def test_another_address_is_not_reached_and_is_named(workspace: Path, registry: int) -> None:
    done = await _install(_context(workspace, {"registry.example.org"}), _fetch(registry))
    assert done["exit_code"] != 0
    assert done["not_reached"] == {f"{HOST}:{registry}": "it is no package registry that PACKAGE_HOSTS names"}
    assert not (workspace / "package").exists()


async def test_a_registry_in_a_private_network_needs_the_owners_word_for_that_too(
    workspace: Path, registry: int
) -> None:
    done = await _install(_context(workspace, {f"{HOST}:{registry}"}, private=False), _fetch(registry))
    assert done["exit_code"] != 0 and "private network" in done["not_reached"][f"{HOST}:{registry}"]


async def test_nothing_is_reached_beside_the_proxy_and_nothing_but_tunnels_through_it(
    workspace: Path, registry: int
) -> None:
    context = _context(workspace, {f"{HOST}:{registry}"})
    beside = f"exec 3<>/dev/tcp/{HOST}/{registry}"
    assert (await _install(context, beside))["exit_code"] != 0
    plain = f"import urllib.request; urllib.request.urlopen('http://{HOST}:{registry}/x', timeout=9)"
    done = await _install(context, f"python3 -c {shlex.quote(plain)}")
    assert done["exit_code"] != 0 and "packages come by https alone" in done["not_reached"].values()


async def test_where_no_registry_is_open_or_no_sandbox_has_such_a_way_it_says_what_to_do(
    workspace: Path,
) -> None:
    tool = REGISTRY.get("install_packages")
    closed = _context(workspace, set())
    with pytest.raises(ToolError, match="PACKAGE_HOSTS"):
        await tool.function(closed, command="true")
    with pytest.raises(ToolError, match="works on no task"):  # then no host that is named would help
        await tool.function(replace(closed, roots={}), command="true")
    assert tool.binds is not None
    with pytest.raises(ToolError, match="PACKAGE_HOSTS"):
        await tool.binds(closed, command="true")
    other = replace(_context(workspace, {"registry.example.org"}), sandbox=Sandbox("landlock", ""))
    with pytest.raises(ToolError, match="install bubblewrap"):
        await tool.function(other, command="true")


@pytest.mark.parametrize("name", ["builder", "standard", "guarded"])
def test_a_person_is_asked_whatever_preset_an_agent_works_under(name: str) -> None:
    tool = REGISTRY.get("install_packages")
    policy = preset(name, confined=True)
    touched = spelled(tool.kinds({"command": "npm ci", "timeout": 600}), tool.reads_only)
    assert policy.decide(tool.name, tool.category, ["npm ci"], touched).vote == "ask"


def test_nothing_is_open_until_the_owner_names_it() -> None:
    assert Settings(_env_file=None).package_hosts == frozenset()
    named = Settings(_env_file=None, PACKAGE_HOSTS="py.acme.example:8443, js.acme.example").package_hosts
    assert named == {"py.acme.example:8443", "js.acme.example"}
