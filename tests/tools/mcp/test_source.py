"""A server's tools are tools like ours: a category on demand, permission by name and server, foreign results."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import types

from shared import folders
from shared.errors import ToolError
from shared.guard.permissions.presets import preset
from shared.guard.sandbox.sandbox import Sandbox
from shared.mcp.link import Patience, ServerLink
from shared.mcp.listing import listing
from shared.mcp.servers import Servers
from shared.tools import catalog, describe
from shared.tools.execute import ToolExecutor
from shared.tools.mcp import adapt
from shared.tools.mcp.launch import launching
from shared.tools.mcp.source import ServerTools
from shared.tools.registry import Category, Registry
from shared.tools.view import ToolView
from tests.mcp.conftest import SCRIPT, start, stdio
from tests.support.guards import guarded
from tests.tools.bench import Bench

ours = catalog.registry()


class House:
    """A data folder with its servers."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.sandbox = Sandbox("none", "")
        launch = launching(home, lambda: self.sandbox)
        self.servers = Servers.of_home(home, [], launch, Patience(start=10, answer=5, back=3))
        self.source = ServerTools(self.servers)

    def write(self, **servers: list[str]) -> None:
        entries = {
            name: {
                "command": sys.executable,
                "args": ["-P", str(SCRIPT), *args],
                "timeout": 2 if args == ["mute"] else 60,  # a busy machine reads a flood slowly
            }
            for name, args in servers.items()
        }
        file = self.home / "mcp.json"
        file.write_text(json.dumps({"mcpServers": entries}))
        file.chmod(0o600)

    async def categories(self, wanted: list[str] | None = None) -> list[Category]:
        return list(await self.source.categories("chatter", wanted, {}))

    async def registry(self) -> Registry:
        return ours.extended(await self.categories())


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setenv(folders.FOLDER, str(tmp_path))
    made = House(tmp_path / "home")
    made.home.mkdir(mode=0o700)
    yield made
    await made.servers.close()
    mine = psutil.Process().children(recursive=True)
    assert not [one for one in mine if str(SCRIPT) in one.cmdline()], "a server is left"


async def test_without_servers_nothing_is_added(house: House) -> None:
    assert await house.categories() == []


async def test_each_server_is_a_category_that_can_be_loaded(house: House, bench: Bench) -> None:
    house.write(one=["well"])
    registry = await house.registry()
    view = ToolView(registry, ["list_tasks"], on_demand=True)
    assert "mcp__one: mcp__one__{echo,look,slow,die}" in view.index and "mcp: " in view.index
    handler = ToolExecutor(registry)
    loaded = await handler.execute("load_tools", {"category": "mcp__one"}, bench.context())
    assert loaded["tools_added"][0] == "mcp__one__echo"
    assert loaded["source"], "what a server says of its tools is foreign text"
    answer = await handler.execute("mcp__one__echo", {"text": "hi"}, bench.context())
    assert answer == {"content": "hi", "source": "MCP server one"}


async def test_an_agent_has_the_servers_that_its_profile_names_and_no_others_are_started(
    house: House,
) -> None:
    house.write(one=["well"], two=["well"])
    assert [one.name for one in await house.categories(["two"])] == ["mcp", "mcp__two"]
    assert [health.name for health in house.servers.health] == ["two"]


async def test_a_profile_may_bring_a_server_of_its_own(house: House) -> None:
    own = {"mine": {"command": sys.executable, "args": ["-P", str(SCRIPT)]}}
    found = await house.source.categories("chatter", [], own)
    assert [one.name for one in found] == ["mcp", "mcp__mine"]


async def test_two_agents_of_one_process_have_each_their_own(house: House) -> None:
    house.write(one=["well"], two=["well"])
    first = await house.source.categories("chatter", ["one"], {})
    second = await house.source.categories("writer", ["two"], {})
    assert ([one.name for one in first], [one.name for one in second]) == (
        ["mcp", "mcp__one"],
        ["mcp", "mcp__two"],
    )
    assert await house.source.categories("chatter", ["one"], {}) is first


async def test_an_agent_that_takes_no_turns_any_more_keeps_no_server_running(house: House) -> None:
    house.write(one=["well"], two=["well"])
    house.servers = Servers.of_home(
        house.home, [], launching(house.home, lambda: house.sandbox), Patience(start=10, idle=-1)
    )
    source = ServerTools(house.servers)
    await source.categories("writer", ["two"], {})
    await source.categories("chatter", ["one"], {})
    assert [health.name for health in house.servers.health] == ["one"]


async def test_the_same_object_comes_back_while_nothing_changed_and_a_change_is_taken_up(
    house: House,
) -> None:
    house.write(one=["well"])
    first = await house.source.categories("chatter", None, {})
    assert await house.source.categories("chatter", None, {}) is first
    house.write(two=["well"])
    assert [one.name for one in await house.categories()] == ["mcp", "mcp__two"]
    assert [health.name for health in house.servers.health] == ["two"]


async def test_a_call_is_asked_for_under_standard_by_tool_and_server(house: House) -> None:
    house.write(one=["well"])
    registry = await house.registry()
    tool = registry.get("mcp__one__look")
    checked = tool.check({"text": "x"})
    assert (tool.category, tool.detail(checked), tool.effect) == ("mcp__one", "one/look", "pure")
    ruling = preset("standard").decide(tool.name, tool.category, ["one/look"], tool.touched(checked))
    assert ruling.vote == "ask"
    assert (
        preset("locked").decide(tool.name, tool.category, ["one/look"], tool.touched(checked)).vote == "deny"
    )


async def test_a_yes_is_for_this_server_and_for_the_tool_as_it_is_described(
    house: House, bench: Bench
) -> None:
    house.write(one=["well"])
    tool = (await house.registry()).get("mcp__one__echo")
    assert tool.binds
    facts = await tool.binds(bench.context(), text="x")
    assert facts["server"].endswith("mcp_server.py well") and len(facts["definition"]) == 16
    does = await describe.call(None, tool, {"text": "x"}, facts)
    assert does == ["call one/echo, a tool of an MCP server", "text: x", "it says of itself: echo it."]


async def test_arguments_that_the_server_would_not_take_never_reach_it(house: House, bench: Bench) -> None:
    house.write(one=["well"])
    answer = await ToolExecutor(await house.registry()).execute(
        "mcp__one__echo", {"text": 3}, bench.context()
    )
    assert answer["error"] == "mcp__one__echo cannot take these arguments"


async def test_errors_of_a_server_are_errors_and_marked_as_its_words(house: House, bench: Bench) -> None:
    calls = house.home / "calls"
    calls.write_text("")
    calls.with_suffix(".tools").write_text("fail")
    house.write(one=["well", str(calls)])
    handler = ToolExecutor(await house.registry())
    answer = await handler.execute("mcp__one__fail", {"text": "no such city"}, bench.context())
    assert answer == {
        "error": "fail of one failed",
        "why": "no such city",
        "source": "MCP server one",
    }


@pytest.mark.parametrize(
    ("mode", "tool", "why"),
    [
        ("huge", "echo", "more than 4 MiB"),
        ("flood", "echo", "more than 2000 messages"),
        ("mute", "echo", "silent for 2 s"),
        ("lies", "answers", "n: 'no number' is not of type 'integer'"),
    ],
)
async def test_a_bad_server_gives_a_clear_error_and_its_tools_stay(
    house: House, bench: Bench, mode: str, tool: str, why: str
) -> None:
    house.write(bad=[mode])
    handler = ToolExecutor(await house.registry())
    answer = await handler.execute(f"mcp__bad__{tool}", {"text": "x"}, bench.context())
    assert why in json.dumps(answer) and answer["source"] == "MCP server bad"
    assert f"mcp__bad__{tool}" in await house.registry()


async def test_for_a_server_that_is_away_nobody_is_asked_and_the_call_says_so(bench: Bench) -> None:
    away = ServerLink(stdio(), start, Patience(back=0.05))
    away.listing = listing([types.Tool(name="echo", input_schema={"type": "object"})], "tester")
    tool = adapt.category(away).tools[0]
    assert tool.ready
    with pytest.raises(ToolError, match="the MCP server tester is not there"):
        await tool.ready(bench.context())
    handler = ToolExecutor(ours.extended([adapt.category(away)]))
    answer = await handler.execute(tool.name, {}, bench.context())
    assert answer["error"] == "the MCP server tester is not there" and "by itself" in answer["fix"]


async def test_resources_and_prompts_are_listed_and_read_as_foreign_text(house: House, bench: Bench) -> None:
    house.write(one=["well"])
    handler = ToolExecutor(await house.registry())

    async def run(name: str, /, **arguments: Any) -> dict[str, Any]:
        return await handler.execute(name, arguments, bench.context())

    assert [one["name"] for one in (await run("list_mcp_servers"))["servers"]] == ["one"]
    assert (await run("list_mcp_resources", server="one"))["resources"][0]["uri"] == "note://a"
    read = await run("read_mcp_resource", server="one", uri="note://a")
    assert read == {"content": "what the note says", "source": "MCP server one"}
    assert (await run("list_mcp_prompts", server="one"))["prompts"][0]["arguments"][0]["name"] == "who"
    prompt = await run("get_mcp_prompt", server="one", name="greet", arguments={"who": "Ada"})
    assert prompt["content"] == "user: Greet Ada"
    assert (await run("list_mcp_prompts", server="none"))["error"] == "there is no MCP server called 'none'"


def _with_tools(house: House, names: str) -> None:
    calls = house.home / "calls"
    calls.write_text("")
    calls.with_suffix(".tools").write_text(names)
    house.write(one=["well", str(calls)])


@guarded("clean-environment")
async def test_a_server_has_none_of_our_variables(
    house: House, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY_OF_OURS", "a-key")
    _with_tools(house, "env")
    answer = await ToolExecutor(await house.registry()).execute(
        "mcp__one__env", {"text": ""}, bench.context()
    )
    assert "PATH" in answer["content"] and "SOME_KEY_OF_OURS" not in answer["content"]


@guarded("leftovers")
async def test_nothing_that_a_server_started_outlives_it(house: House, bench: Bench) -> None:
    _with_tools(house, "child")
    answer = await ToolExecutor(await house.registry()).execute(
        "mcp__one__child", {"text": ""}, bench.context()
    )
    child = psutil.Process(int(answer["content"]))
    await house.servers.close()
    try:
        assert psutil.wait_procs([child], timeout=2)[0], "it goes on"
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


@guarded("worktree-only")
async def test_a_server_with_a_sandbox_changes_nothing_but_its_own_folder(
    house: House, bench: Bench, sandbox: Sandbox, tmp_path: Path
) -> None:
    if sandbox.mode != "bwrap":
        pytest.skip("there is no bubblewrap here")
    folder = house.home / "mcp" / "boxed"
    folder.mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "server.py")
    (folder / "calls").write_text("")
    (folder / "calls.tools").write_text("touch")
    target = Path(tempfile.gettempdir()) / f"beside-{tmp_path.name}-{os.getpid()}"
    entry = {"command": "python3", "args": ["./server.py", "well", "./calls"], "sandbox": True}
    file = house.home / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"boxed": entry}}))
    file.chmod(0o600)
    house.sandbox = sandbox
    handler = ToolExecutor(await house.registry())
    try:
        for path in (target, folder / "inside"):
            await handler.execute("mcp__boxed__touch", {"text": str(path)}, bench.context())
        assert (folder / "inside").exists()
        assert not target.exists()
    finally:
        target.unlink(missing_ok=True)
