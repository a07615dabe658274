"""MCP servers in a cluster: their tools in a conversation, lost and back while a turn uses them, and ended with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support import mcp_elsewhere
from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.valkey import free_port
from tests.support.wire import Message, Wire

SCRIPT = Path(__file__).parents[1] / "support" / "mcp_server.py"


def call(name: str, text: str = "hi") -> dict[str, Any]:
    return {"tools": [{"name": name, "input": {"text": text}}]}


def tool(name: str, hold: str = "", **given: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": given}], "hold": hold}


PORT = free_port()
LOAD = {"tools": [{"name": "load_tools", "input": {"category": "mcp__good"}}]}
SETTINGS = {"PERMISSION_PROFILE": "open"}
RULES: list[dict[str, Any]] = [
    {
        "user": "use it",
        "steps": [LOAD, call("mcp__good__echo", "hello"), {"text": "It says {{result.content}}"}],
    },
    {
        "user": "lose it",
        "steps": [call("mcp__good__die"), call("mcp__good__look", "back"), {"text": "{{result}}"}],
    },
    {"user": "as writer", "steps": [call("mcp__mine__echo", "mine"), {"text": "{{result.content}}"}]},
    {"user": "flood", "steps": [call("mcp__flood__echo"), {"text": "{{result.error}}: {{result.why}}"}]},
    {"user": "huge", "steps": [call("mcp__huge__echo"), {"text": "{{result.error}}: {{result.why}}"}]},
    {"user": "hang", "steps": [call("mcp__mute__echo"), {"text": "{{result.error}}: {{result.why}}"}]},
    {
        "user": "others",
        "steps": [
            tool("mcp__time__get_current_time", timezone="Asia/Tokyo"),
            tool("mcp__everything__echo", message="one"),
            tool("mcp__time__get_current_time", hold="killed", timezone="Asia/Kathmandu"),
            tool("mcp__everything__echo", message="two"),
            {"text": "{{result.content}}"},
        ],
    },
    {"steps": [{"text": "You said: {{user}}"}]},
]


@pytest.fixture(scope="module", autouse=True)
def chatter(place: Site) -> Worker:
    modes = {"good": "well", "flood": "flood", "huge": "huge", "mute": "mute"}
    servers: dict[str, Any] = {
        name: {
            "command": sys.executable,
            "args": ["-P", str(SCRIPT), mode],
            "timeout": 2 if mode == "mute" else 60,  # a busy machine reads a flood slowly
        }
        for name, mode in modes.items()
    }
    servers |= {"time": mcp_elsewhere.TIME, "everything": {"url": f"http://127.0.0.1:{PORT}/mcp"}}
    place.home.mkdir(parents=True, mode=0o700)
    file = place.home / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    file.chmod(0o600)
    return place.up("chatter")[0]


def _promptdock(place: Site, *arguments: str) -> Any:
    command = [sys.executable, "-P", "-m", "gateways.cli", *arguments]
    done = subprocess.run(
        command,
        cwd=place.folder,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def _servers(worker: Worker) -> list[psutil.Process]:
    found = psutil.Process(worker.pid).children(recursive=True)
    return [one for one in found if one.cmdline()[-2:-1] == [str(SCRIPT)]]


def test_a_servers_tools_are_named_in_the_prompt_loaded_and_used(wire: Wire, api: MessagesApi) -> None:
    start = len(api.requests)
    assert wire.ask("use it")["content"] == "It says hello"
    first, second, *_ = api.requests[start:]
    assert "mcp__good: mcp__good__{echo,look,slow,die}" in json.dumps(first["system"])
    assert "mcp__good__echo" not in {tool["name"] for tool in first["tools"]}
    assert "mcp__good__echo" in {tool["name"] for tool in second["tools"]}


def test_a_server_that_dies_under_a_turn_is_back_within_that_turn(wire: Wire, api: MessagesApi) -> None:
    start = len(api.requests)
    assert '"content": "back"' in wire.ask("lose it")["content"]
    said = json.dumps(api.requests[start + 1]["messages"])
    assert "whether it took effect is not known" in said


def test_servers_that_others_wrote_are_killed_and_restarted_while_a_turn_uses_them(
    wire: Wire, api: MessagesApi, place: Site, chatter: Worker
) -> None:
    start = len(api.requests)
    with mcp_elsewhere.running(PORT):
        listed = _promptdock(place, "mcp", "list", "--json")  # by which its worker tries it again at once
        found = {one["name"]: one["agents"] for one in listed["servers"]}
        assert found["everything"] == {"chatter": "13 tools"}
        sent = wire.send("use the others", user="eve")
        until(lambda: len(api.requests) >= start + 3, what="both having been used")
    (time,) = [
        one
        for one in psutil.Process(chatter.pid).children(recursive=True)
        if "mcp_server_time" in one.cmdline()[2:4]
    ]
    time.kill()
    with mcp_elsewhere.running(PORT):
        api.released.add("killed")
        closing = wire.closing(sent)
    assert (closing["status"], closing["content"]) == ("complete", "Echo: two")
    said = json.dumps(api.requests[-1]["messages"])
    assert "+09:00" in said and "+05:45" in said and "Echo: one" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("flood", "more than 2000 messages"),
        ("huge", "more than 4 MiB"),
        ("hang", "it was silent for 2 s"),
    ],
)
def test_a_bad_server_costs_a_clear_error_and_no_turn(wire: Wire, words: str, why: str) -> None:
    closing = wire.ask(words)
    assert closing["status"] == "complete" and why in closing["content"]


def test_the_list_of_tools_is_the_same_while_a_server_is_away(
    wire: Wire, api: MessagesApi, chatter: Worker
) -> None:
    def shown() -> tuple[Any, Any]:
        start = len(api.requests)
        wire.ask("hello")
        first = next(body for body in api.requests[start:] if "tools" in body)
        return first["system"], first["tools"]

    before = shown()
    for server in _servers(chatter):
        server.kill()
    assert shown() == before


def test_who_answers_by_another_profile_has_the_servers_of_that_one_and_no_others(
    wire: Wire, api: MessagesApi
) -> None:
    mine = {"mine": {"command": sys.executable, "args": ["-P", str(SCRIPT)]}}
    made = wire.command("create_profile", id="writer", name="Writer", mcp_servers=mine)
    assert made["status"] == "complete", made
    start = len(api.requests)
    assert wire.ask("as writer", profile_id="writer")["content"] == "mine"
    told = json.dumps(next(body for body in api.requests[start:] if "tools" in body)["system"])
    assert "mcp__mine__" in told and "mcp__good__" not in told
    assert wire.ask("use it", user="another")["content"] == "It says hello"


def test_a_killed_worker_leaves_no_server_and_a_call_is_asked_for_under_standard(
    wire: Wire, place: Site, chatter: Worker
) -> None:
    servers = until(lambda: _servers(chatter), what="servers being there")
    chatter.kill()
    until(lambda: not any(one.is_running() for one in servers), what="servers having ended")
    place.up("chatter", PERMISSION_PROFILE="standard")
    wire.send("use it", user="ada")

    def asked() -> Message | None:
        return next((one for one in wire.outputs("ada") if one["status"] == "awaiting_approval"), None)

    request = until(asked, what="permission being asked for")
    assert request is not None
    card = request["approval"]
    assert card["action"] == "tool:mcp__good__echo:good/echo"
    assert card["about"]["does"] == "call good/echo, a tool of an MCP server"
    assert card["bound"]["server"].endswith("mcp_server.py well") and card["bound"]["definition"]
