"""In the place of claude-agent-sdk, which is an extra: as much of it as `shared/executors/claude_code.py` uses.

It is put on the path of a worker under the SDK's name, with `claude.py` as the program that came with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class HookMatcher:
    """Hooks of one event, for all tools."""

    hooks: list[Any]
    timeout: float | None = None
    on_failure: str = ""


@dataclass
class ClaudeAgentOptions:
    """What the client is told."""

    hooks: dict[str, list[HookMatcher]]
    can_use_tool: Any = None
    setting_sources: list[str] | None = None


@dataclass
class StreamEvent:
    """Never sent by `claude.py`."""

    event: dict[str, Any]


@dataclass
class ResultMessage:
    """The end."""

    result: str
    is_error: bool = False
    subtype: str = "success"
    api_error_status: int | None = None
    stop_reason: str = "end_turn"
    total_cost_usd: float = 0.0
    errors: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    model_usage: dict[str, Any] = field(default_factory=dict)


class ClaudeSDKClient:
    """Answers what the program asks of the hooks, until it has a result."""

    def __init__(self, options: ClaudeAgentOptions, transport: Any) -> None:
        self._options, self._pipe = options, transport

    async def connect(self) -> None:
        """Start the program."""
        await self._pipe.connect()

    async def disconnect(self) -> None:
        """The pipe is closed by whom it belongs to."""

    async def query(self, words: str) -> None:
        """Say something to it."""
        await self._send(type="user", message={"role": "user", "content": words})

    async def receive_response(self) -> AsyncIterator[ResultMessage]:
        """What it says, to its result."""
        async for message in self._pipe.read_messages():
            if message["type"] == "result":
                yield ResultMessage(message["result"])
                return
            await self._hook(message["request_id"], message["request"])

    async def _hook(self, id: str, request: dict[str, Any]) -> None:
        (matcher,) = self._options.hooks[request["callback_id"]]
        answer: dict[str, Any] = {"subtype": "success", "request_id": id}
        try:
            answer["response"] = await matcher.hooks[0](
                request["input"], request["input"]["tool_use_id"], {"signal": None}
            )
        except Exception as error:  # as the SDK does: what becomes of it is said to the program
            answer |= {"subtype": "error", "error": f"the hook failed: {type(error).__name__}: {error}"}
        await self._send(type="control_response", response=answer)

    async def _send(self, **message: Any) -> None:
        await self._pipe.write(json.dumps(message) + "\n")


def install(folder: Path) -> Path:
    """Make both in a folder; it is for PYTHONPATH."""
    program = folder / "_bundled" / "claude"
    program.parent.mkdir(parents=True)
    text = Path(__file__).with_name("claude.py").read_text("utf-8")
    program.write_text(f"#!{Path(sys.executable).resolve()} -ISB\n{text}", "utf-8")
    program.chmod(0o755)
    (folder / "claude_agent_sdk.py").write_text(Path(__file__).read_text("utf-8"), "utf-8")
    return folder
