"""How a step looks on the wire: the events of a Messages stream, or the whole message at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.messages_script import Body, Step

PIECE = 12  # characters of one delta


def event(kind: str, **data: Any) -> bytes:
    """One server-sent event."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def blocks(step: Step, number: int) -> list[Body]:
    """The content blocks of a step; ids and signatures are made from the request's number."""
    made: list[Body] = []
    if step.thinking:
        made.append({"type": "thinking", "thinking": step.thinking, "signature": f"signature-{number}=="})
    if step.text:
        made.append({"type": "text", "text": step.text})
    for place, call in enumerate(step.tools):
        name = call.get("id") or f"toolu_{number:04d}_{place}"
        made.append({"type": "tool_use", "id": name, "name": call["name"], "input": call.get("input", {})})
    return made


def usage(step: Step) -> dict[str, int]:
    """Token counts; what the step does not name is made up, but always the same."""
    made = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1 + len(step.text) // 4,
    }
    return {**made, **step.usage}


def message(step: Step, body: Body, number: int) -> Body:
    """The whole message, as a request without `stream` gets it."""
    return {
        "id": f"msg_{number:04d}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks(step, number),
        "stop_reason": step.stop_reason,
        "stop_sequence": None,
        "usage": usage(step),
    }


def events(step: Step, body: Body, number: int) -> Iterator[bytes]:
    """The stream, up to and including its fault; a `cut` and a `stall` simply end here."""
    whole = message(step, body, number)
    if step.fault == "empty":
        return
    counted = whole["usage"]
    begin = {**whole, "content": [], "stop_reason": None, "usage": {**counted, "output_tokens": 1}}
    yield event("message_start", message=begin)
    for _ in range(1 + step.pings):
        yield event("ping")
    for index, block in enumerate(whole["content"]):
        yield from _block(index, block)
    if step.fault == "overloaded":
        yield event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    elif step.fault == "garbled":
        yield b"event: message_delta\ndata: {\n\n"
    elif not step.fault:
        told = {"stop_reason": step.stop_reason, "stop_sequence": None}
        yield event("message_delta", delta=told, usage={"output_tokens": counted["output_tokens"]})
        yield event("message_stop")


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + PIECE] for at in range(0, len(text), PIECE))


def _block(index: int, block: Body) -> Iterator[bytes]:
    kind = block["type"]
    if kind == "tool_use":
        empty, deltas = (
            {**block, "input": {}},
            _deltas("input_json", "partial_json", json.dumps(block["input"])),
        )
    elif kind == "thinking":
        empty = {"type": kind, "thinking": "", "signature": ""}
        deltas = [
            *_deltas("thinking", "thinking", block["thinking"]),
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    else:
        empty, deltas = {"type": kind, "text": ""}, _deltas("text", "text", block["text"])
    yield event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield event("content_block_delta", index=index, delta=delta)
    yield event("content_block_stop", index=index)


def _deltas(kind: str, name: str, text: str) -> list[Body]:
    return [{"type": f"{kind}_delta", name: piece} for piece in _pieces(text)]
