"""OpenAI, and every server that speaks its chat.completions, through the real SDK: always streamed."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.errors import ConfigurationError, ModelError, ModelOverloaded, ModelUnusable, PromptDockError
from shared.models import chat, sight
from shared.models.base import Answer, Block, Delta, OnDelta, Request, Usage
from shared.models.loading import load
from shared.models.prices import priced
from shared.models.remote import RemoteModel, hooks, no_temperature

if TYPE_CHECKING:
    from openai import APIError, APIStatusError, AsyncOpenAI, AsyncStream
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionChunk

PROVIDER = "https://api.openai.com/v1"
NO_KEY = "none"  # for servers of one's own that ask for none; the SDK wants one
LENGTH, LENGTH_BEFORE = "max_completion_tokens", "max_tokens"  # as OpenAI calls it, and as most others do
# What some models and servers refuse, and can be done without or said in another way.
_SPARED = ("temperature", "stream_options", LENGTH, LENGTH_BEFORE)
_SIGHT = "images"  # what models without sight refuse; no parameter, but spared like one
# Words about the picture itself: another model would not take it either.
_UNREADABLE = re.compile(r"(?i)\b(too large|corrupt|could not (be )?(decode|process|parse)|failed to|empty)")
_BROKE = ("insufficient_quota", "billing_hard_limit_reached")
_THOUGHTS = ("reasoning_content", "reasoning")  # fields beside the words, as servers call them


@dataclass
class _Gathered:
    """What was streamed so far."""

    text: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: dict[int, tuple[str, str, list[str]]] = field(default_factory=dict)  # id, name, arguments
    reason: str = ""
    refused: bool = False
    model: str = ""
    usage: CompletionUsage | None = None

    def take(self, chunk: ChatCompletionChunk) -> list[Delta]:
        """One more piece; what of it is told while it comes."""
        self.model = chunk.model or self.model
        self.usage = chunk.usage or self.usage
        if not chunk.choices:
            return []
        choice = chunk.choices[0]
        self.reason = choice.finish_reason or self.reason
        delta, told = choice.delta, []
        thought = next((got for name in _THOUGHTS if isinstance(got := getattr(delta, name, None), str)), "")
        if thought:
            self.thought.append(thought)
            told.append(Delta("thinking", thought))
        if words := (delta.content or "") + (delta.refusal or ""):
            self.text.append(words)
            told.append(Delta("text", words))
        self.refused = self.refused or bool(delta.refusal)
        for piece in delta.tool_calls or ():
            id, name, arguments = self.calls.get(piece.index, ("", "", []))
            made = piece.function
            arguments.append((made.arguments if made else "") or "")
            self.calls[piece.index] = (piece.id or id, (made.name if made else "") or name, arguments)
        return told

    def blocks(self) -> list[Block]:
        """The answer in our form."""
        found: list[Block] = []
        if thought := "".join(self.thought):
            found.append(chat.thinking(thought, self.model))
        if (text := "".join(self.text)).strip():
            found.append({"type": "text", "text": text})
        calls = (self.calls[index] for index in sorted(self.calls))
        return found + [chat.call(id, name, "".join(pieces)) for id, name, pieces in calls]


class OpenAIModel(RemoteModel):
    """OpenAI, or another server at `base_url`, which may ask for no key."""

    name = "openai"
    called = "OpenAI"
    company = "OpenAI"
    key_name, address_name = "OPENAI_API_KEY", "OPENAI_BASE_URL"
    heavy = ("openai", "genai_prices")
    _client: AsyncOpenAI | None = None

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self._refused: defaultdict[str, set[str]] = defaultdict(set)  # parameters, by model
        if not self._own:
            self.company = f"the server at {self._base_url}"

    @property
    def _own(self) -> bool:
        return (self._base_url or PROVIDER).rstrip("/") == PROVIDER

    def warmest(self, model: str) -> float:
        return 2.0

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _list(self, limit: int) -> list[str]:
        client = await self._open()
        async with self._ours():
            page = await client.models.list()
            newest = sorted(page.data or (), key=lambda model: -(model.created or 0))
            return [model.id for model in newest][:limit]

    async def _ask(self, request: Request, emit: OnDelta) -> Answer:
        client = await self._open()
        for _ in (*_SPARED, _SIGHT):
            sent = self._parameters(request)
            try:
                return await self._once(client, request, sent, emit)
            except _Spare as spare:
                self._refused[request.model].add(spare.name)
        return await self._once(client, request, self._parameters(request), emit)

    async def _once(self, client: AsyncOpenAI, request: Request, sent: Block, emit: OnDelta) -> Answer:
        got = _Gathered(model=request.model)
        async with self._ours(sent):
            create: Any = (
                client.chat.completions.create
            )  # its overloads do not know what `stream` in `sent` is
            stream: AsyncStream[ChatCompletionChunk] = await create(**sent)
            async with stream:
                async for chunk in stream:
                    for delta in got.take(chunk):
                        emit(delta)
        if not got.reason:
            raise self._cut("the stream ended without a reason to stop" if got.model else "nothing was sent")
        return Answer(
            content=tuple(got.blocks()),
            stop_reason="refusal" if got.refused else chat.stop(got.reason, bool(got.calls)),
            usage=priced(got.model, _usage(got.usage), self.name, None if self._own else self._base_url),
            model=got.model,
            provider=self.name,
            notes=self._notes(request),
        )

    def _parameters(self, request: Request) -> dict[str, Any]:
        """The request as the SDK takes it, without what this model refused before."""
        refused = self._refused[request.model]
        shown = sight.unseen(request.messages) if _SIGHT in refused else request.messages
        said = chat.parted(shown, request.model)
        system = "\n\n".join(part for part in request.system if part.strip())
        first = [{"role": "system", "content": system}] if system else []
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [*first, *map(_message, said)],
            "stream": True,
        }
        if request.tools:
            body["tools"] = [chat.tool(spec) for spec in request.tools]
        if request.temperature is not None and "temperature" not in refused:
            body["temperature"] = request.temperature
        if "stream_options" not in refused:
            body["stream_options"] = {"include_usage": True}
        lengths = (LENGTH, LENGTH_BEFORE) if self._own else (LENGTH_BEFORE, LENGTH)
        if taken := [name for name in lengths if name not in refused]:
            body[taken[0]] = request.max_tokens
        return body

    def _notes(self, request: Request) -> tuple[str, ...]:
        refused, notes = self._refused[request.model], list[str]()
        if request.temperature is not None and "temperature" in refused:
            notes.append(no_temperature(request.model, request.temperature))
        if _SIGHT in refused and sight.pictured(request.messages):
            notes.append(sight.cannot_see(request.model))
        return tuple(notes)

    async def _open(self) -> AsyncOpenAI:
        if self._client is None:
            try:
                await load(*self.heavy)
            except ImportError as error:
                raise ConfigurationError(
                    "models of OpenAI and of servers like it cannot be asked",
                    f"the library openai is not installed ({error})",
                    "pip install 'promptdock[openai]'",
                ) from error
            self._client = self._client or self._connect(self._secret())
        return self._client

    async def warm(self) -> None:
        await self._open()

    def _connect(self, secret: str) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        return AsyncOpenAI(
            api_key=secret,
            base_url=self._base_url
            or PROVIDER,  # else the SDK reads the environment, also of an untrusted folder
            max_retries=0,
            timeout=self._timeout(),
            http_client=DefaultAsyncHttpxClient(event_hooks=hooks()),
        )

    def _secret(self) -> str:
        return super()._secret() if self._own or self._key().strip() else NO_KEY

    def _load_key(self) -> None:
        secret = self._secret()
        if self._client is not None:
            self._client = self._client.with_options(api_key=secret)

    @asynccontextmanager
    async def _ours(self, sent: Block | None = None) -> AsyncIterator[None]:
        """Turn whatever the SDK and its transport raise into errors of ours."""
        import httpx2
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            raise self._refusal(error, sent or {}) from error
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, PromptDockError):  # it was not sent, for a reason of ours
                raise error.__cause__ from None
            raise self._transport_error(error.__cause__ or error) from error
        except openai.APIError as error:  # an error event inside a stream that began with 200
            raise self._broken(error) from error
        except httpx2.TransportError as error:
            raise self._transport_error(error) from error
        except (ValueError, AttributeError, TypeError) as error:  # what comes is no chunk of an answer
            raise self._cut(f"{type(error).__name__}: {error}") from error
        except openai.OpenAIError as error:
            raise ModelError(
                f"{self.company} could not be asked", f"{type(error).__name__}: {error}"
            ) from error

    def _refusal(self, error: APIStatusError, sent: Block) -> Exception:
        status, code = error.status_code, str(error.code or "")
        why = f"{_words(error)} (HTTP {status}{', ' if code else ''}{code})"
        if status in (400, 422) and (name := _spared(error, sent)):
            return _Spare(name)
        if status == 404 and sent and not code and "model" not in why.lower():
            return ModelUnusable(
                f"{self.company} has nothing at that address", why, f"check {self.address_name}"
            )
        return self._status_error(
            status, why, error.response.headers, broke=code in _BROKE or str(error.type) in _BROKE
        )

    def _broken(self, error: APIError) -> ModelOverloaded:
        return ModelOverloaded(f"{self.company} broke the answer off", _words(error))


class _Spare(Exception):
    """The model takes all but this parameter."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _words(error: APIError) -> str:
    body = error.body
    return str(body.get("message") or error.message) if isinstance(body, dict) else error.message


def _spared(error: APIStatusError, sent: Block) -> str:
    """The parameter that is refused, if it is one that can be spared; "" where it is not."""
    if "image" in error.message.lower() and '"image_url"' in json.dumps(sent.get("messages", ())):
        return "" if _UNREADABLE.search(error.message) else _SIGHT
    here = [name for name in _SPARED if name in sent]
    if error.param:
        return error.param if error.param in here else ""
    return next((name for name in here if f"'{name}'" in error.message or f"`{name}`" in error.message), "")


def _message(said: chat.ChatMessage | chat.ToolReply) -> Block:
    if isinstance(said, chat.ToolReply):
        return {"role": "tool", "tool_call_id": said.call, "content": said.text or "(nothing)"}
    content: Any = said.text
    if said.images:
        words = [{"type": "text", "text": said.text}] if said.text else []
        content = [*words, *({"type": "image_url", "image_url": {"url": _url(one)}} for one in said.images)]
    told: Block = {"role": said.role, "content": content or None}
    if said.thought:
        told[_THOUGHTS[0]] = said.thought
    if said.calls:
        told["tool_calls"] = [_call(block) for block in said.calls]
    return told


def _call(block: Block) -> Block:
    arguments = json.dumps(block["input"], ensure_ascii=False)
    return {
        "id": block["id"],
        "type": "function",
        "function": {"name": block["name"], "arguments": arguments},
    }


def _url(image: Block) -> str:
    source = image["source"]
    return (
        str(source["url"])
        if source["type"] == "url"
        else f"data:{source['media_type']};base64,{source['data']}"
    )


def _usage(used: CompletionUsage | None) -> Usage:
    """Cached tokens are part of the prompt's there, and apart with us."""
    if used is None:
        return Usage()
    details = used.prompt_tokens_details
    read = (details.cached_tokens if details else 0) or 0
    written = (details.cache_write_tokens if details else 0) or 0
    fresh = max(0, used.prompt_tokens - read - written)
    return Usage(input=fresh, output=used.completion_tokens or 0, cache_read=read, cache_write=written)
