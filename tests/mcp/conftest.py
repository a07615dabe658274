"""Sessions with real servers, which end with their test."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shared.mcp.config import Server, server
from shared.mcp.link import Patience, ServerLink
from shared.mcp.stdio import Start

SCRIPT = Path(__file__).parents[1] / "support" / "mcp_server.py"
SURE = 60.0  # seconds; a busy machine starts nothing quickly
QUICK = Patience(start=SURE, health=30, answer=SURE, back=SURE)


def start(server: Server) -> Start:
    return Start([server.spec.command, *server.spec.args], {"PATH": os.environ["PATH"]}, "/tmp")


def stdio(mode: str = "well", *more: str, **fields: Any) -> Server:
    entry = {"command": sys.executable, "args": ["-P", str(SCRIPT), mode, *more], **fields}
    return server("tester", entry, Path("/home/mcp.json"), {})


@asynccontextmanager
async def connected(one: Server, patience: Patience = QUICK) -> AsyncIterator[ServerLink]:
    link = ServerLink(one, start, patience)
    task = asyncio.create_task(link.run())
    try:
        yield link
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


Call = Callable[..., Awaitable[Any]]


async def call(link: ServerLink, name: str, text: str = "hi") -> str:
    """What a tool answers, as text."""

    async def say(_text: str) -> None:
        return None

    await link.present()
    tool = link.tool(name)
    assert tool is not None, link.health
    answer = await link.call(tool, {"text": text}, say)
    return "".join(str(getattr(block, "text", "")) for block in answer.content)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Where a server notes its calls, and is told which tools it has."""
    file = tmp_path / "calls"
    file.write_text("")
    file.with_suffix(".tools").write_text("echo again once_dead")
    return file
