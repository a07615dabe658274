"""A server on loopback that speaks chat.completions, with streamed tool calls, after the scripts of messages_api.

Tool calls come in pieces, their arguments cut anywhere; usage comes in a chunk of its own, and only where it was
asked for. A thought comes as `reasoning_content`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from starlette.responses import JSONResponse

from tests.support.messages_api import MessagesApi, headers
from tests.support.messages_script import Body, Step

MODELS = ("gpt-6.1-sol", "gpt-4.1-mini", "o4-mini")
PIECE = 7  # characters of one delta
_STOPS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


class ChatApi(MessagesApi):
    """The server. `refuses` names parameters that it answers with 400, as models without them do."""

    answers_at, lists_at = "/v1/chat/completions", "/v1/models"

    def __init__(self, *args: Any, refuses: Collection[str] = (), **fields: Any) -> None:
        super().__init__(*args, **{"models": MODELS, **fields})
        self.refuses = refuses

    def complaint(self, body: Body) -> str:
        if found := [name for name in self.refuses if name in body]:
            return f"Unsupported parameter: '{found[0]}' is not supported with this model."
        if "images" in self.refuses and '"image_url"' in json.dumps(body["messages"]):
            return "Invalid content type. image_url is only supported by certain models."
        return complaint(body)

    def neutral(self, body: Body) -> Body:
        return neutral(body)

    def pieces(self, step: Step, body: Body, number: int) -> Iterator[bytes]:
        return chunks(step, body, number)

    def whole(self, step: Step, body: Body, number: int) -> Body:
        raise NotImplementedError("answers are always streamed")

    def error(self, step: Step) -> JSONResponse:
        told: Body = {"message": step.message, "type": step.error_type, "param": None, "code": None}
        told["param"] = next((name for name in self.refuses if f"'{name}'" in step.message), None)
        return JSONResponse({"error": told}, status_code=step.status, headers=headers(step))

    def listing(self) -> dict[str, Any]:
        made = [
            {"id": name, "object": "model", "created": 1_790_000_000 - place, "owned_by": "us"}
            for place, name in enumerate(self.models)
        ]
        return {"object": "list", "data": made}


def complaint(body: Body) -> str:
    """What the real API refuses of a request's messages."""
    open_calls: list[str] = []
    for place, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return f"messages.{place}: tool_call_id of no call"
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            return f"messages.{place}: tool_calls must be followed by tool messages: {open_calls}"
        if not (message.get("content") or message.get("tool_calls")):
            return f"messages.{place}: nothing is in it"
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
    return f"messages: calls without a result: {open_calls}" if open_calls else ""


def neutral(body: Body) -> Body:
    """A request of chat.completions in the form of the Messages API."""
    system = [part["content"] for part in body["messages"] if part["role"] in ("system", "developer")]
    messages: list[Body] = []
    for message in body["messages"]:
        if message["role"] in ("system", "developer"):
            continue
        role, blocks = _blocks(message)
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    tools = [{"name": tool["function"]["name"]} for tool in body.get("tools", ())]
    return {**body, "system": "\n".join(map(str, system)), "messages": messages, "tools": tools}


def _blocks(message: Body) -> tuple[str, list[Body]]:
    content = message.get("content") or []
    if message["role"] == "tool":
        call = message.get("tool_call_id") or message.get("tool_name")
        return "user", [{"type": "tool_result", "tool_use_id": call, "content": content}]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    blocks = [part for part in parts if part["type"] == "text"]
    for call in message.get("tool_calls", ()):
        given = call["function"]["arguments"]
        asked = json.loads(given) if isinstance(given, str) else given
        name = call["function"]["name"]
        blocks.append({"type": "tool_use", "id": call.get("id") or name, "name": name, "input": asked})
    return message["role"], blocks


def chunks(step: Step, body: Body, number: int) -> Iterator[bytes]:
    """The stream, up to and including its fault; a `cut` and a `stall` simply end here."""
    if step.fault == "empty":
        return

    def chunk(delta: Body | None, finish: str | None = None, **more: Any) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        told = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": body["model"],
        }
        return f"data: {json.dumps({**told, 'choices': choices, **more})}\n\n".encode()

    yield chunk({"role": "assistant", "content": ""})
    yield from (b": ping\n\n" for _ in range(step.pings))
    yield from (chunk({"reasoning_content": piece}) for piece in _cut(step.thinking))
    yield from (chunk({"content": piece}) for piece in _cut(step.text))
    for place, call in enumerate(step.tools):
        name = call.get("id", f"call_{number:04d}_{place}_abcdef")
        begun = {"index": place, "id": name, "type": "function"}
        yield chunk({"tool_calls": [{**begun, "function": {"name": call["name"], "arguments": ""}}]})
        given = call.get("arguments") or json.dumps(call.get("input", {}))
        for piece in _cut(given):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    if step.fault == "overloaded":
        yield b'data: {"error": {"message": "Overloaded", "type": "server_error", "code": 503}}\n\n'
    elif step.fault == "garbled":
        yield b"data: {\n\n"
    elif not step.fault:
        yield chunk({}, _STOPS.get(step.stop_reason, step.stop_reason))
        if body.get("stream_options", {}).get("include_usage"):
            yield chunk(None, usage=usage(step))
        yield b"data: [DONE]\n\n"


def usage(step: Step) -> Body:
    """As OpenAI counts: cached tokens are part of the prompt's."""
    used = {"input_tokens": 100, "output_tokens": 1 + len(step.text) // 4, **step.usage}
    cached, written = (
        used.get("cache_read_input_tokens", 0), used.get("cache_creation_input_tokens", 0)
    )  # fmt: skip
    prompt = used["input_tokens"] + cached + written
    return {
        "prompt_tokens": prompt,
        "completion_tokens": used["output_tokens"],
        "total_tokens": prompt + used["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
    }


def _cut(text: str) -> Iterator[str]:
    return (text[at : at + PIECE] for at in range(0, len(text), PIECE))
