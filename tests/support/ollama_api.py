"""A server on loopback that speaks Ollama's own API: JSON by the line, whole tool calls, after the same scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from starlette.responses import JSONResponse

from tests.support.chat_api import neutral
from tests.support.messages_api import Exchange, MessagesApi, headers
from tests.support.messages_script import Body, Step

MODELS = ("qwen3:8b", "llama3.2:latest")
PIECE = 9  # characters of one line
_STOPS = {"max_tokens": "length"}


class OllamaApi(MessagesApi):
    """The server; it asks for no key unless `keys` are set. `thinks` names the models that think."""

    answers_at, lists_at = "/api/chat", "/api/tags"
    content_type = b"application/x-ndjson"

    def __init__(
        self, *args: Any, thinks: tuple[str, ...] = (), sees: tuple[str, ...] = (), **fields: Any
    ) -> None:
        super().__init__(*args, **{"models": MODELS, **fields})
        self.thinks, self.sees = thinks, sees

    def other(self, exchange: Exchange) -> dict[str, Any] | None:
        if exchange.path != "/api/show":
            return None
        seeing = exchange.body["model"] in self.sees
        return {"capabilities": ["completion", "tools", *(["vision"] if seeing else [])]}

    def complaint(self, body: Body) -> str:
        if any("images" in one for one in body["messages"]) and body["model"] not in self.sees:
            return "this model is missing data required for image input"
        for place, message in enumerate(body["messages"]):
            if not isinstance(message.get("content", ""), str):
                return f"json: cannot unmarshal array into messages.{place}.content of type string"
            for call in message.get("tool_calls", ()):
                if not isinstance(call["function"]["arguments"], dict):
                    return f"json: cannot unmarshal messages.{place}.tool_calls.arguments into an object"
        if body.get("think") and body["model"] not in self.thinks:
            return f'"{body["model"]}" does not support thinking'
        return ""

    def neutral(self, body: Body) -> Body:
        return neutral(body)

    def pieces(self, step: Step, body: Body, number: int) -> Iterator[bytes]:
        return lines(step, body)

    def whole(self, step: Step, body: Body, number: int) -> Body:
        raise NotImplementedError("answers are always streamed")

    def error(self, step: Step) -> JSONResponse:
        return JSONResponse({"error": step.message}, status_code=step.status, headers=headers(step))

    def listing(self) -> dict[str, Any]:
        return {
            "models": [
                {"name": name, "model": name, "modified_at": f"2026-10-{28 - place:02}T00:00:00Z", "size": 1}
                for place, name in enumerate(self.models)
            ]
        }


def lines(step: Step, body: Body) -> Iterator[bytes]:
    """The stream, up to and including its fault; a `cut` and a `stall` simply end here."""
    if step.fault == "empty":
        return

    def line(message: Body, **more: Any) -> bytes:
        told = {"model": body["model"], "created_at": "2026-11-01T00:00:00Z", "done": False}
        return (
            json.dumps({**told, "message": {"role": "assistant", "content": "", **message}, **more}) + "\n"
        ).encode()

    yield from (line({"thinking": piece}) for piece in _cut(step.thinking))
    yield from (line({"content": piece}) for piece in _cut(step.text))
    for call in step.tools:
        given = call.get("input", {})
        yield line({"tool_calls": [{"function": {"name": call["name"], "arguments": given}}]})
    if step.fault == "overloaded":
        yield b'{"error": "the model runner has stopped"}\n'
    elif step.fault == "garbled":
        yield b'{"model": \n'
    elif not step.fault:
        used = {"input_tokens": 100, "output_tokens": 1 + len(step.text) // 4, **step.usage}
        counts = {"prompt_eval_count": used["input_tokens"], "eval_count": used["output_tokens"]}
        yield line({}, done=True, done_reason=_STOPS.get(step.stop_reason, "stop"), **counts)


def _cut(text: str) -> Iterator[str]:
    return (text[at : at + PIECE] for at in range(0, len(text), PIECE))
