"""What the Messages API refuses: enough of its rules that no test passes with a request it would not take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.support.messages_script import Body

SAMPLING = ("temperature", "top_p", "top_k")
_FIVE_FIVE = re.compile(r"claude-[a-z]+-5-5")


def complaint(body: Body) -> str:
    """Why the API would answer this request with 400; "" where it would not."""
    return next(_complaints(body), "")


def _complaints(body: Body) -> Iterator[str]:
    for name in ("model", "max_tokens", "messages"):
        if not body.get(name):
            yield f"{name}: Field required"
            return
    yield from _parameters(body)
    yield from _messages(body["messages"])
    names = [tool.get("name", "") for tool in body.get("tools", ())]
    if len(set(names)) != len(names):
        yield "tools: Tool names must be unique."
    yield from (f"tools: {name!r} is no name" for name in names if not re.fullmatch(r"[\w-]{1,128}", name))


def _parameters(body: Body) -> Iterator[str]:
    if not _FIVE_FIVE.search(body["model"]):
        return
    yield from (f"{name} is not supported for this model" for name in SAMPLING if name in body)
    thinking = body.get("thinking", {})
    if thinking.get("type", "adaptive") == "enabled" or "budget_tokens" in thinking:
        yield "thinking.type.enabled is not supported for this model"
    if body["messages"][-1]["role"] == "assistant" and not _paused(body["messages"][-1]):
        yield "This model does not support assistant message prefill."


def _paused(message: Body) -> bool:
    """An answer of ours that is sent back to be gone on with carries blocks, a prefill is a string."""
    return not isinstance(message["content"], str)


def _blocks(message: Body) -> list[Body]:
    content: Any = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _messages(messages: list[Body]) -> Iterator[str]:
    if messages[0]["role"] != "user":
        yield "messages: first message must use the user role"
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        content = _blocks(message)
        answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if message["role"] == "user":
            if missing := [name for name in open_calls if name not in answered]:
                yield f"messages.{place}: `tool_use` ids without `tool_result` blocks: {', '.join(missing)}"
            if strange := [name for name in answered if name not in open_calls]:
                yield f"messages.{place}: unexpected `tool_use_id` in `tool_result`: {', '.join(strange)}"
            open_calls = []
        open_calls += [block["id"] for block in content if block["type"] == "tool_use"]
        if any(block["type"] == "text" and not block["text"].strip() for block in content):
            yield f"messages.{place}: text content blocks must contain non-whitespace text"
        kinds = [block["type"] == "tool_result" for block in content]
        if kinds != sorted(kinds, reverse=True):
            yield f"messages.{place}: `tool_result` blocks must come first"
        if not content:
            yield f"messages.{place}: content must not be empty"
    if open_calls:
        yield "messages: the last `tool_use` has no `tool_result`"
