"""Our blocks as the messages of chat protocols, and their answers as our blocks; pure functions.

Chat protocols have a message of its own for each tool result, arguments as a string or an object, and thoughts in
a field beside the words. What is sent follows from the blocks alone, so that a conversation keeps its bytes.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from shared.models.base import Block, ModelMessage, StopReason, ToolSpec

_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_SHOWN = 2000  # characters of arguments that are no JSON, as the model gets them back


@dataclass(frozen=True)
class ChatMessage:
    """Words, images and calls of one side."""

    role: str
    text: str = ""
    images: tuple[Block, ...] = ()
    calls: tuple[Block, ...] = ()
    thought: str = ""  # what the same model thought before these calls


@dataclass(frozen=True)
class ToolReply:
    """What came of one call."""

    call: str
    tool: str
    text: str


def parted(messages: Iterable[ModelMessage], model: str) -> Iterator[ChatMessage | ToolReply]:
    """The messages as chat protocols have them. Thoughts go back to `model` alone, and with their calls alone."""
    tools: dict[str, str] = {}
    for message in messages:
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        shown: list[Block] = []
        for block in blocks:
            if block["type"] == "tool_result":
                text, images = _result(block)
                shown += images
                call = block["tool_use_id"]
                yield ToolReply(call, tools.get(call, ""), text)
        said = _said(message["role"], blocks, shown, model)
        tools |= {call["id"]: call["name"] for call in said.calls}
        if said.text or said.images or said.calls:
            yield said


def _said(role: str, blocks: list[Block], shown: list[Block], model: str) -> ChatMessage:
    calls = tuple(block for block in blocks if block["type"] == "tool_use")
    thoughts = [str(b["thinking"]) for b in blocks if b["type"] == "thinking" and b.get("model") == model]
    return ChatMessage(
        role,
        "\n\n".join(str(block["text"]) for block in blocks if block["type"] == "text"),
        (*shown, *(block for block in blocks if block["type"] == "image")),
        calls,
        "\n".join(thoughts) if calls else "",
    )


def _result(block: Block) -> tuple[str, list[Block]]:
    content = block.get("content") or ""
    if isinstance(content, str):
        return content, []
    texts = [str(part["text"]) for part in content if part["type"] == "text"]
    return "\n".join(texts), [part for part in content if part["type"] == "image"]


def tool(spec: ToolSpec) -> Block:
    """A tool as both protocols have it."""
    told = {"name": spec.name, "description": spec.description, "parameters": spec.schema}
    return {"type": "function", "function": told}


def thinking(text: str, model: str) -> Block:
    """A thought; it goes back to the model that had it, and to no other."""
    return {"type": "thinking", "thinking": text, "model": model}


def call(id: str, name: str, arguments: Any) -> Block:
    """A call. What is no object goes to the tool as it is, which says so to the model."""
    given = arguments
    if isinstance(arguments, str):
        try:
            given = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            given = arguments
    if not isinstance(given, dict):
        given = {"unreadable_arguments": str(given)[:_SHOWN]}
    return {"type": "tool_use", "id": known(id), "name": name, "input": given}


def known(id: str) -> str:
    """The call's id, or one of ours where the server counts from 0 in each answer, or gives none."""
    return id if _ID.fullmatch(id) else f"call_{secrets.token_hex(12)}"


def stop(reason: str, calls: bool) -> StopReason:
    """Why it stopped, in our words; some servers say `stop` beside calls, or `tool_calls` without any."""
    match reason:
        case "length":
            return "max_tokens"
        case "content_filter":
            return "refusal"
    return "tool_use" if calls else "end_turn"
