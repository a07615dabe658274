"""The executor of tools: what a call costs beside the tool itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from shared.store.sqlite import SqliteStore
from shared.tools.context import Context
from shared.tools.execute import ToolExecutor
from shared.tools.registry import Category, Registry

_bench = Category("bench", "Does nothing")


@_bench.tool(effect="pure")
async def echo(context: Context, text: str, times: int = 1) -> dict[str, Any]:
    """Give back a text."""
    return {"text": text * times}


async def measure(home: Path, seconds: float) -> None:
    """Print the difference between a call through the executor and the bare function."""
    store = SqliteStore(home / "execute.db")
    await store.open()
    try:
        context = Context(agent="bench", session_id="s", turn_id="t", store=store)
        executor = ToolExecutor(Registry([_bench]))
        through, bare = [], []
        ends = time.perf_counter() + seconds
        while (started := time.perf_counter()) < ends:
            result = await executor.execute("echo", {"text": "hello"}, context, "t.1.1")
            between = time.perf_counter()
            await echo(context, text="hello")
            through.append(between - started)
            bare.append(time.perf_counter() - between)
            assert result == {"text": "hello"}, result
    finally:
        await store.close()
    print(f"\nA tool that reads only, through the executor ({len(through)} calls):")
    print(f"  p50 {_at(through, 50) - _at(bare, 50):.1f} us more than the bare function", end="")
    print(f", p99 {_at(through, 99) - _at(bare, 99):.1f} us")


def _at(times: list[float], percent: int) -> float:
    return sorted(times)[len(times) * percent // 100] * 1e6
