"""Claude through the real SDK: always streamed, and cached."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from shared.errors import ModelError, PromptDockError
from shared.models.base import Answer, Block, Delta, ModelMessage, OnDelta, Request, ToolSpec, Usage
from shared.models.loading import load
from shared.models.prices import priced
from shared.models.remote import RemoteModel, hooks, no_temperature

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic
    from anthropic.types import Message

PROVIDER = "https://api.anthropic.com"
BRIEF = 1024  # up to so many tokens of answer, thinking is kept short so that words are left for the answer

_EPHEMERAL = {"type": "ephemeral"}
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d)(?:[-.](\d{1,2}))?(?!\d)")
_BUSY_TYPE = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
_KEY_TYPE = frozenset({"authentication_error", "permission_error"})


def version(model: str) -> tuple[int, int] | None:
    """(major, minor) of a Claude model's name, also behind a gateway's prefix; None where it names none."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else None


def manners(model: str, temperature: float | None, max_tokens: int) -> dict[str, Any]:
    """The parameters of thinking and sampling that this model takes.

    Temperature is taken before 4.7, adaptive thinking from 4.6, never both in one request. A name without a
    version gets neither, since either may be refused.
    """
    number = version(model)
    if number is None:
        return {}
    if temperature is not None and number < (4, 7):
        return {"extra_body": {"temperature": temperature}}  # no longer a parameter of the SDK
    if number < (4, 6):
        return {}
    chosen: dict[str, Any] = {"thinking": {"type": "adaptive", "display": "summarized"}}
    if max_tokens <= BRIEF:
        chosen["output_config"] = {"effort": "low"}
    return chosen


def dropped(model: str, temperature: float | None) -> tuple[str, ...]:
    """Words for the person where this model does not take their temperature."""
    if temperature is None or (version(model) or (9, 9)) < (4, 7):
        return ()
    return (no_temperature(model, temperature),)


def _system(parts: tuple[str, ...]) -> list[Block]:
    blocks: list[Block] = [{"type": "text", "text": part} for part in parts if part.strip()]
    if blocks:  # the tools and the first part stay cached also where what comes behind them changes
        blocks[0]["cache_control"] = _EPHEMERAL
    return blocks


def parameters(request: Request) -> dict[str, Any]:
    """The request as the SDK's `messages.stream` takes it."""
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": [_signed(message) for message in request.messages],
        "cache_control": _EPHEMERAL,
        **manners(request.model, request.temperature, request.max_tokens),
    }
    if system := _system(request.system):
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def _signed(message: ModelMessage) -> ModelMessage:
    """Without the thoughts of models of others, which bear no signature and are refused."""
    content = message["content"]
    if isinstance(content, str) or all(map(_ours_or_none, content)):
        return message
    kept = [block for block in content if _ours_or_none(block)]
    return {**message, "content": kept or [{"type": "text", "text": "(nothing was said)"}]}


def _ours_or_none(block: Block) -> bool:
    return block.get("type") != "thinking" or bool(block.get("signature"))


def _tool(tool: ToolSpec) -> Block:
    told: Block = {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    return told | {"defer_loading": True} if tool.deferred else told


class AnthropicModel(RemoteModel):
    """Claude."""

    name = "anthropic"
    called = "Claude"
    company = "Anthropic"
    key_name, address_name = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
    heavy = ("anthropic", "genai_prices")
    _client: AsyncAnthropic | None = None

    def defers(self, model: str) -> bool:
        """Claude 4.5 and later, at Anthropic itself: gateways that stand in for it often refuse these blocks."""
        own = (self._base_url or PROVIDER).rstrip("/") == PROVIDER
        return own and (version(model) or (0, 0)) >= (4, 5)

    def warmest(self, model: str) -> float:
        return 1.0

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _list(self, limit: int) -> list[str]:
        client = await self._open()
        async with self._ours():
            page = await client.models.list(limit=limit)
            return [info.id for info in page.data]

    async def _ask(self, request: Request, emit: OnDelta) -> Answer:
        client = await self._open()
        begun = False
        async with self._ours(), client.messages.stream(**parameters(request)) as stream:
            async for event in stream:
                begun = begun or event.type == "message_start"
                if event.type == "text":
                    emit(Delta("text", event.text))
                elif event.type == "thinking" and event.thinking:
                    emit(Delta("thinking", event.thinking))
            if not begun:
                raise self._cut("nothing was sent")
            message = await stream.get_final_message()
            if message.stop_reason is None:
                raise self._cut("the stream ended without a stop reason")
            return _answer(message, dropped(request.model, request.temperature))

    async def _open(self) -> AsyncAnthropic:
        if self._client is None:
            await load(*self.heavy)
            self._client = self._client or self._connect(self._secret())
        return self._client

    def _connect(self, secret: str) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        return AsyncAnthropic(
            api_key=secret,
            base_url=self._base_url,
            max_retries=0,
            timeout=self._timeout(),
            http_client=DefaultAsyncHttpxClient(event_hooks=hooks()),
        )

    def _load_key(self) -> None:
        secret = self._secret()
        if self._client is not None:
            self._client = self._client.with_options(api_key=secret)

    @asynccontextmanager
    async def _ours(self) -> AsyncIterator[None]:
        """Turn whatever the SDK and its transport raise into errors of ours."""
        import anthropic
        import httpx2

        try:
            yield
        except anthropic.APIStatusError as error:
            raise self._refusal(error) from error
        except anthropic.APIConnectionError as error:
            if isinstance(error.__cause__, PromptDockError):  # it was not sent, for a reason of ours
                raise error.__cause__ from None
            raise self._transport_error(error.__cause__ or error) from error
        except httpx2.TransportError as error:
            raise self._transport_error(error) from error
        except ValueError as error:  # an event that is no JSON
            raise self._cut(str(error)) from error
        except anthropic.AnthropicError as error:
            raise ModelError("Anthropic could not be asked", f"{type(error).__name__}: {error}") from error

    def _refusal(self, error: APIStatusError) -> ModelError:
        """The error for a status, or for an error event inside a stream that began with 200."""
        status, kind = error.status_code, error.type or ""
        why = f"{error.api_message or error.message} (HTTP {status}{', ' if kind else ''}{kind})"
        return self._status_error(
            status,
            why,
            error.response.headers,
            refused=kind in _KEY_TYPE,
            busy=status == 200 and kind in _BUSY_TYPE,
            limited=kind == "rate_limit_error",
            broke=kind == "billing_error" or "credit balance" in why,
        )


def _answer(message: Message, notes: tuple[str, ...]) -> Answer:
    assert message.stop_reason is not None
    blocks = (block.to_dict(mode="json", warnings=False) for block in message.content)
    used = message.usage
    usage = Usage(
        input=used.input_tokens,
        output=used.output_tokens,
        cache_read=used.cache_read_input_tokens or 0,
        cache_write=used.cache_creation_input_tokens or 0,
    )
    return Answer(
        content=tuple(block for block in blocks if block["type"] != "text" or str(block["text"]).strip()),
        stop_reason=message.stop_reason,
        usage=priced(message.model, usage, AnthropicModel.name),
        model=message.model,
        provider=AnthropicModel.name,
        notes=notes,
    )
