"""`mcp`: servers whose tools the agents use, and the cluster as a server for other programs."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

import typer

from gateways.cli import screen
from gateways.cli.options import Json, User, group
from gateways.cli.run import run
from shared.client import Client
from shared.client.views import mcp as servers
from shared.errors import PromptDockError, UsageError
from shared.settings import Settings

app = group()
Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name.")]


@app.command("list")
def list_(as_json: Json = False) -> NoReturn:
    """The MCP servers that are configured, and how each agent finds them; works with the cluster down."""
    run(lambda settings: _list(settings, as_json))


@app.command("add")
def add(
    name: Name,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND …", help="The program and its arguments.")
    ] = None,
    url: Annotated[str, typer.Option(help="An address that speaks streamable HTTP.")] = "",
    header: Annotated[
        list[str] | None, typer.Option(help="For a url: 'Name: value'; ${VARIABLE} is filled in.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(help="For a command: NAME=value; ${VARIABLE} is filled in.")
    ] = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Confine the command as those of agents are.")
    ] = False,
    network: Annotated[
        bool, typer.Option("--network", help="With --sandbox: let it reach the network.")
    ] = False,
    timeout: Annotated[float | None, typer.Option(min=1, help="Seconds that one call may take.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="In place of one of that name.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Add a server to the data folder's mcp.json; agents have it from their next turn on."""
    entry: dict[str, Any] = {}
    if command:
        entry |= {"command": command[0], "args": command[1:]}
    if url:
        entry |= {"type": "http", "url": url}

    async def work(settings: Settings) -> None:
        more = {
            "headers": _pairs(header, ":", "Name: value"),
            "env": _pairs(env, "=", "NAME=value"),
            "sandbox": sandbox,
            "network": network,
            "timeout": timeout,
        }
        whole = entry | {key: value for key, value in more.items() if value}
        file = servers.add(settings, name, whole, replace)
        _told(as_json, name, f"{name} is added to {file}. Try it: promptdock mcp test {name}", file=str(file))

    run(work)


@app.command("remove")
def remove(name: Name, as_json: Json = False) -> NoReturn:
    """Take a server out of the data folder's mcp.json."""

    async def work(settings: Settings) -> None:
        file = servers.remove(settings, name)
        _told(as_json, name, f"{name} is removed from {file}", file=str(file))

    run(work)


@app.command("test")
def test(
    name: Name,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds in which it has to begin.")] = 30.0,
    as_json: Json = False,
) -> NoReturn:
    """Start or reach a server, and list what it has; needs no cluster."""
    run(lambda settings: _test(settings, name, timeout, as_json))


@app.command("serve")
def serve(user: User) -> NoReturn:
    """Be an MCP server over stdio: another program talks with Chatter, sees tasks and what waits for you."""
    import os
    from pathlib import Path

    from shared.client.local import supervision, trust
    from shared.settings import find_home

    trust.ask()
    home = Path(os.environ.get("PROMPTDOCK_HOME") or find_home()).expanduser().resolve()
    supervision.become("gateways.mcp", home, "--user", user)


async def _list(settings: Settings, as_json: bool) -> None:
    async with Client(settings) as client:
        await servers.reached(client)
        found = await servers.listed(client)
    problems = [problem.told for problem in servers.configured(settings).problems]
    if as_json:
        screen.document("mcp_servers", servers=found, problems=problems)
        return
    own = str(settings.home / "mcp.json")
    rows = [
        (
            one["name"],
            screen.state(_state(one)),
            "data folder" if one["file"] == own else one["file"],
            one["where"],
        )
        for one in found
    ]
    screen.table(
        rows,
        ("name", "state", "from", "what"),
        "No MCP server is configured: promptdock mcp add NAME -- COMMAND …",
    )
    for one in found:
        for note in one["notes"]:
            screen.talk(f"{one['name']}: {note}")
    for told in problems:
        screen.talk(screen.warning("not used: "), told)


def _state(one: dict[str, Any]) -> str:
    seen: dict[str, str] = one["agents"]
    if one["state"]:
        return str(one["state"])
    states = sorted(set(seen.values()))
    if len(states) == 1:
        return states[0]
    return "; ".join(f"{agent}: {state}" for agent, state in seen.items()) or "not in use"


async def _test(settings: Settings, name: str, timeout: float, as_json: bool) -> None:
    found = await servers.tried(settings, name, timeout)
    async with Client(
        settings
    ) as client:  # it is here: the workers that lost it need not find that out later
        await servers.reached(client)
    if as_json:
        screen.document("mcp_server", name=name, **vars(found))
        return
    screen.talk(f"{name} is {found.called or 'a server without a name'}")
    rows = [(tool["name"], tool["effect"], " ".join(str(tool["does"]).split())) for tool in found.tools]
    screen.table(rows, ("tool", "effect", "does, in its words"), "It has no tools.")
    if found.resources or found.prompts:
        screen.talk(f"{found.resources} resources and templates, {found.prompts} prompts")
    for left in found.left_out:
        screen.talk(screen.warning("left out: "), left)
    if not found.tools and found.left_out:
        raise PromptDockError(f"no tool of {name} can be used", "each was left out, as said above", "")


def _pairs(given: list[str] | None, between: str, form: str) -> dict[str, str]:
    pairs = [text.partition(between) for text in given or ()]
    for name, found, _ in pairs:
        if not (found and name.strip()):
            raise UsageError(f"{name[:40]!r} cannot be used", "", f"write it as {form}")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _told(as_json: bool, name: str, text: str, **fields: Any) -> None:
    if as_json:
        screen.document("mcp_changed", name=name, **fields)
    else:
        screen.talk(text)
