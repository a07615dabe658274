"""Servers that others wrote, as they are published: over stdio from PyPI, over HTTP from npm; killed and used again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from shared.errors import ToolError
from shared.mcp.config import server
from shared.mcp.link import ServerLink
from tests.mcp.conftest import QUICK, connected
from tests.support import mcp_elsewhere
from tests.support.valkey import free_port


async def used(link: ServerLink, name: str, said: list[str] | None = None, **arguments: Any) -> str:
    """What a tool answers, as text."""

    async def say(text: str) -> None:
        (said if said is not None else []).append(text)

    await link.present()
    tool = link.tool(name)
    assert tool is not None, link.health
    answer = await link.call(tool, arguments, say)
    return "".join(str(getattr(block, "text", "")) for block in answer.content)


async def test_the_time_server_of_pypi_is_used_killed_and_used_again() -> None:
    time = server("time", mcp_elsewhere.TIME, Path("/home/mcp.json"), {})
    async with connected(time) as link:
        given: dict[str, Any] = {
            "source_timezone": "UTC",
            "time": "12:00",
            "target_timezone": "Asia/Tokyo",
        }
        assert "21:00" in await used(link, "convert_time", **given)
        assert link.listing.left_out == () and {tool.effect for tool in link.listing.tools} == {"pure"}
        (child,) = [
            one for one in psutil.Process().children(recursive=True) if "mcp_server_time" in one.cmdline()
        ]
        child.kill()
        assert "+09:00" in await used(link, "get_current_time", timezone="Asia/Tokyo")


async def test_a_server_of_npm_over_http_is_used_killed_under_a_call_and_used_again() -> None:
    port = free_port()
    everything = server("everything", {"url": f"http://127.0.0.1:{port}/mcp"}, Path("/home/mcp.json"), {})
    said: list[str] = []
    async with connected(everything, replace(QUICK, back=5)) as link:
        with mcp_elsewhere.running(port) as process:
            assert await used(link, "echo", message="hello") == "Echo: hello"
            assert "12" in await used(link, "get-sum", a=5, b=7)
            found, templates = await link.resources()
            assert found and templates and await link.read(str(found[0].uri))
            names = {one.name for one in await link.prompts()}
            assert "simple-prompt" in names and await link.prompt("simple-prompt", {})
            long = {"duration": 600, "steps": 6000}
            call = asyncio.ensure_future(used(link, "trigger-long-running-operation", said, **long))
            async with asyncio.timeout(30):
                while not said:
                    await asyncio.sleep(0.01)
            process.kill()
            with pytest.raises(ToolError, match="everything is not there"):
                await asyncio.wait_for(call, 30)
        with mcp_elsewhere.running(port):
            assert await used(link, "echo", message="again") == "Echo: again"
    assert said[0].startswith("everything: ")
