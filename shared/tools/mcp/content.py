"""What a server answers, as a result of ours: text, bounded, and marked as written by others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from shared.errors import ToolError
from shared.mcp import schema
from shared.mcp.listing import ListedTool
from shared.tools.registry import Result

if TYPE_CHECKING:
    from mcp import types

_TEXT = 48 * 1024  # characters that are told of one answer


def source(server: str) -> str:
    """How the words of a server are marked."""
    return f"MCP server {server}"


def called(server: str, tool: ListedTool, answer: types.CallToolResult) -> Result:
    """Of a call; an error of the server's is an error here."""
    text = _bounded("\n".join(_text(block) for block in answer.content))
    if answer.is_error:
        why = text or "it does not say why"
        return {"error": f"{tool.name} of {server} failed", "why": why, "source": source(server)}
    result: Result = {"content": text, "source": source(server)}
    if answer.structured_content is not None and not text:
        result["structured"] = answer.structured_content
    if tool.output and (wrong := schema.answered(tool.output, answer.structured_content)):
        return {
            "error": f"{tool.name} of {server} answered otherwise than it says that it does",
            "why": wrong,
            **result,
        }
    return result


def failed(server: str, error: ToolError) -> Result:
    """Of a call that came to nothing; the server may have said why."""
    return {**error.as_dict(), "source": source(server)}


def read(server: str, answer: types.ReadResourceResult) -> Result:
    """Of a resource."""
    parts = [_contents(part) for part in answer.contents]
    return {"content": _bounded("\n".join(parts)), "source": source(server)}


def prompt(server: str, answer: types.GetPromptResult) -> Result:
    """Of a prompt: its messages, which nobody has said here."""
    parts = [f"{message.role}: {_text(message.content)}" for message in answer.messages]
    described = {"description": answer.description} if answer.description else {}
    return {**described, "content": _bounded("\n\n".join(parts)), "source": source(server)}


def _text(block: Any) -> str:
    kind = getattr(block, "type", "")
    if kind == "text":
        return str(block.text)
    if kind == "resource":
        return _contents(block.resource)
    if kind == "resource_link":
        return f"[resource {block.uri}: {block.name}]"
    if kind in ("image", "audio"):
        return f"[{kind} {block.mime_type}, {len(block.data) * 3 // 4} bytes, not shown]"
    return f"[{kind or 'something'}, not shown]"


def _contents(part: Any) -> str:
    text = getattr(part, "text", None)
    if text is not None:
        return str(text)
    return f"[{part.mime_type or 'data'} of {part.uri}, {len(part.blob) * 3 // 4} bytes, not shown]"


def _bounded(text: str) -> str:
    if len(text) <= _TEXT:
        return text
    half = _TEXT // 2
    return f"{text[:half]}\n[… {len(text) - _TEXT} characters left out …]\n{text[-half:]}"


def some(items: Iterable[Any], most: int) -> tuple[list[Any], dict[str, str]]:
    """The first of them, and a warning where there are more."""
    found = list(items)
    more = {"warning": f"{len(found) - most} more are not listed"} if len(found) > most else {}
    return found[:most], more
