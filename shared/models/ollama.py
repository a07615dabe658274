"""Models on an Ollama server, through its own API: only there the length of the context can be chosen.

Over its other, OpenAI-compatible address a prompt that is longer than the server's usual context loses its
beginning, the system prompt, and nothing says so.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shared.errors import ModelError, ModelOverloaded, ModelUnusable, PromptDockError
from shared.models import chat, sight
from shared.models.base import Answer, Block, Delta, OnDelta, Request, Usage
from shared.models.loading import load
from shared.models.remote import RemoteModel, hooks

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

PROVIDER = "http://127.0.0.1:11434"
CONTEXT = 16_384  # tokens: what the tools and the prompt of an agent need, with room for a conversation


class OllamaModel(RemoteModel):
    """Models of an Ollama server. `context` is how many tokens prompt and answer may have together."""

    name = "ollama"
    called = "Ollama"
    company = "Ollama"
    key_name, address_name = "OLLAMA_API_KEY", "OLLAMA_BASE_URL"
    heavy = ("httpx2",)
    _client: AsyncClient | None = None

    def __init__(self, *args: Any, context: int = CONTEXT, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self._context = context
        self._seeing: dict[str, bool] = {}  # models that were asked for
        address = (self._base_url or PROVIDER).rstrip("/")
        self._address = address.removesuffix("/v1").removesuffix("/api")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _list(self, limit: int) -> list[str]:
        client = await self._open()
        async with self._ours():
            answer = await client.get("/api/tags", headers=self._headers())
            if answer.status_code != 200:
                raise self._refusal(answer.status_code, answer)
            rows = answer.json()["models"]
            newest = sorted(rows, key=lambda row: str(row.get("modified_at", "")), reverse=True)
            return [str(row["name"]) for row in newest][:limit]

    async def _sees(self, client: AsyncClient, model: str) -> bool:
        """Whether that model takes pictures; asked once. A server that does not say so is believed to."""
        if model not in self._seeing:
            answer = await client.post("/api/show", json={"model": model}, headers=self._headers())
            told = answer.json() if answer.status_code == 200 else {}
            self._seeing[model] = "vision" in told.get("capabilities", ["vision"])
        return self._seeing[model]

    async def _ask(self, request: Request, emit: OnDelta) -> Answer:
        client = await self._open()
        notes: tuple[str, ...] = ()
        if sight.pictured(request.messages):
            async with self._ours():
                blind = not await self._sees(client, request.model)
            if blind:
                request = replace(request, messages=sight.unseen(request.messages))
                notes = (sight.cannot_see(request.model),)
        text, thought, calls, last = [], [], [], None
        asked = client.stream("POST", "/api/chat", json=self._body(request), headers=self._headers())
        async with self._ours(), asked as answer:
            if answer.status_code != 200:
                await answer.aread()
                raise self._refusal(answer.status_code, answer)
            async for line in answer.aiter_lines():
                if not line.strip():
                    continue
                piece = _Line(json.loads(line))
                if piece.error:
                    raise ModelOverloaded("Ollama broke the answer off", piece.error)
                if piece.thought:
                    thought.append(piece.thought)
                    emit(Delta("thinking", piece.thought))
                if piece.text:
                    text.append(piece.text)
                    emit(Delta("text", piece.text))
                calls += piece.calls
                last = piece if piece.done else last
        if last is None:
            raise self._cut("the stream ended before it was done")
        made = _answer(request, "".join(text), "".join(thought), calls, last)
        return replace(made, notes=notes)

    def _body(self, request: Request) -> dict[str, Any]:
        said = chat.parted(request.messages, request.model)
        system = "\n\n".join(part for part in request.system if part.strip())
        first = [{"role": "system", "content": system}] if system else []
        options: dict[str, Any] = {"num_ctx": self._context, "num_predict": request.max_tokens}
        if request.temperature is not None:
            options["temperature"] = request.temperature
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [*first, *map(_message, said)],
            "stream": True,
        }
        if request.tools:
            body["tools"] = [chat.tool(spec) for spec in request.tools]
        return {**body, "options": options}

    def _headers(self) -> dict[str, str]:
        key = self._key().strip()
        return {"authorization": f"Bearer {self._secret()}"} if key else {}

    async def _open(self) -> AsyncClient:
        if self._client is None:
            await load(*self.heavy)
            from httpx2 import AsyncClient

            self._client = self._client or AsyncClient(
                base_url=self._address, timeout=self._timeout(), event_hooks=hooks()
            )
        return self._client

    def _load_key(self) -> None:
        """It is read for each request."""

    @asynccontextmanager
    async def _ours(self) -> AsyncIterator[None]:
        """Turn whatever the transport raises into errors of ours."""
        import httpx2

        try:
            yield
        except PromptDockError:
            raise
        except httpx2.TransportError as error:
            raise self._transport_error(error) from error
        except (httpx2.InvalidURL, httpx2.HTTPError) as error:
            raise ModelError("Ollama could not be asked", f"{type(error).__name__}: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # no line of an answer
            raise self._cut(f"{type(error).__name__}: {error}") from error

    def _refusal(self, status: int, answer: Response) -> ModelError:
        try:
            why = str(answer.json()["error"])
        except (ValueError, KeyError, TypeError):
            why = answer.text[:300]
        why = f"{why} (HTTP {status})"
        if status == 404 and "model" in why:
            return ModelUnusable("Ollama does not have this model", why, "ollama pull it, or choose another")
        if status == 400 and "does not support tools" in why:
            fix = "choose one that takes tools: promptdock models"
            return ModelUnusable("this model takes no tools, which an agent needs", why, fix)
        return self._status_error(status, why, answer.headers)


class _Line:
    """One line of an answer, read."""

    def __init__(self, data: dict[str, Any]) -> None:
        message = data.get("message") or {}
        self.error = str(data.get("error") or "")
        self.text, self.thought = str(message.get("content") or ""), str(message.get("thinking") or "")
        self.calls: list[Block] = list(message.get("tool_calls") or ())
        self.done, self.reason = bool(data.get("done")), str(data.get("done_reason") or "")
        self.model = str(data.get("model") or "")
        self.input, self.output = int(data.get("prompt_eval_count") or 0), int(data.get("eval_count") or 0)


def _answer(request: Request, text: str, thought: str, calls: list[Block], last: _Line) -> Answer:
    model = last.model or request.model
    content: list[Block] = [chat.thinking(thought, model)] if thought else []
    content += [{"type": "text", "text": text}] if text.strip() else []
    made = [one["function"] for one in calls]
    content += [
        chat.call(str(one.get("id") or ""), str(f["name"]), f.get("arguments") or {})
        for one, f in zip(calls, made, strict=True)
    ]
    return Answer(
        content=tuple(content),
        stop_reason=chat.stop(last.reason, bool(calls)),
        usage=Usage(input=last.input, output=last.output),  # it costs nothing but the machine it runs on
        model=model,
        provider=OllamaModel.name,
    )


def _message(said: chat.ChatMessage | chat.ToolReply) -> Block:
    if isinstance(said, chat.ToolReply):
        return {"role": "tool", "tool_name": said.tool, "content": said.text}
    told: Block = {"role": said.role, "content": said.text}
    if images := [one["source"]["data"] for one in said.images if one["source"]["type"] == "base64"]:
        told["images"] = images
    if said.thought:
        told["thinking"] = said.thought
    if said.calls:
        told["tool_calls"] = [
            {"function": {"name": block["name"], "arguments": block["input"]}} for block in said.calls
        ]
    return told
