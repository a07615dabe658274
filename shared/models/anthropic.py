"""Claude through the real SDK: always streamed, cached, and tried again by us alone.

The SDK's own retries are off: they stop once a stream has begun, and a stream that is stalled, cut, or ended
without a stop reason raises nothing that they know. The transport's read timeout is the watchdog: it counts
from byte to byte, so that pings keep a long thought alive and silence does not.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from shared.errors import ModelError, ModelOverloaded, ModelRefused, ModelUnusable, PromptDockError
from shared.models.base import Answer, Block, Delta, Model, OnDelta, Request, ToolSpec, Usage
from shared.models.loading import load
from shared.models.prices import priced
from shared.models.retry import persist
from shared.models.silence import Silence

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic
    from anthropic.types import Message
    from httpx2 import Request as Sent
    from httpx2 import Response

# Imported in a thread: seconds on the event loop would cost a worker its lease.
_HEAVY = ("anthropic", "genai_prices")
PROVIDER = "https://api.anthropic.com"
IDLE = 60.0
QUIET = 15.0  # seconds of silence after which the person hears of it
TRIES = 4  # of a question about the account, for whose answer somebody sits and waits
ASK_DEADLINE = 30.0  # seconds for questions about the account: which models, does the key work
BRIEF = 1024  # up to so many tokens of answer, thinking is kept short so that words are left for the answer

_EPHEMERAL = {"type": "ephemeral"}
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d)(?:[-.](\d{1,2}))?(?!\d)")
_BUSY_STATUS = frozenset({408, 409, 429})
_BUSY_TYPE = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
_KEY_TYPE = frozenset({"authentication_error", "permission_error"})
# What is awaited before this task's request is sent.
_gate: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("gate", default=None)
# Told of each byte that comes for this task.
_silence: ContextVar[Silence | None] = ContextVar("silence", default=None)
_SENDING = ("send_request_headers.started", "send_request_body.started")
_MODEL_FIX = (
    "set PROMPTDOCK_MODEL, or the agent's own such as CHATTER_MODEL, to one that promptdock models lists"
)
_KEY_FIX = "set one that it takes: promptdock key set"


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


def _system(parts: tuple[str, ...]) -> list[Block]:
    blocks: list[Block] = [{"type": "text", "text": part} for part in parts if part.strip()]
    if len(blocks) > 1:  # the tools and the first part stay cached also when a later part changes
        blocks[0]["cache_control"] = _EPHEMERAL
    return blocks


def parameters(request: Request) -> dict[str, Any]:
    """The request as the SDK's `messages.stream` takes it."""
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": list(request.messages),
        "cache_control": _EPHEMERAL,
        **manners(request.model, request.temperature, request.max_tokens),
    }
    if system := _system(request.system):
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def _tool(tool: ToolSpec) -> Block:
    told: Block = {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    return told | {"defer_loading": True} if tool.deferred else told


class AnthropicModel(Model):
    """Claude. `key` is called when a key is needed, and once more when the provider does not take it.

    `idle` is how many seconds a stream may be silent, `quiet` after how many of them that is said; `base` is the
    unit of the jitter between tries.
    After a `waiting` delta the pieces that were streamed before it are void: the answer begins anew.
    """

    name = "anthropic"
    called = "Claude"

    def __init__(
        self,
        key: Callable[[], str],
        *,
        base_url: str | None = None,
        idle: float = IDLE,
        base: float = 1.0,
        quiet: float = QUIET,
    ) -> None:
        self._key, self._base_url, self._idle, self._base = key, base_url, idle, base
        self._quiet = quiet
        self._client: AsyncAnthropic | None = None

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        """One whole answer. Text blocks without words are left out, since none may be sent back."""
        emit = on_delta or _unheard

        async def attempt() -> Answer:
            try:
                return await self._stream(request, emit)
            except ModelRefused:
                self._load_key()
                return await self._stream(request, emit)

        return await persist(
            attempt,
            deadline=request.deadline,
            tell=lambda text: emit(Delta("waiting", text)),
            base=self._base,
        )

    def defers(self, model: str) -> bool:
        """Claude 4.5 and later, at Anthropic itself: gateways that stand in for it often refuse these blocks."""
        own = (self._base_url or PROVIDER).rstrip("/") == PROVIDER
        return own and (version(model) or (0, 0)) >= (4, 5)

    async def models(self) -> list[str]:
        return await self._ask(1000)

    async def check(self) -> None:
        await self._ask(1)

    async def warm(self) -> None:
        await load(*_HEAVY)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, limit: int) -> list[str]:
        async def listed() -> list[str]:
            client = await self._open()
            async with _ours():
                page = await client.models.list(limit=limit)
                return [info.id for info in page.data]

        async def attempt() -> list[str]:
            try:
                return await listed()
            except ModelRefused:
                self._load_key()
                return await listed()

        return await persist(attempt, deadline=ASK_DEADLINE, tries=TRIES, base=self._base)

    async def _stream(self, request: Request, emit: OnDelta) -> Answer:
        client = await self._open()
        _gate.set(request.ours)
        told = (
            f"Anthropic has been silent for {self._quiet:.0f} s; after {self._idle:.0f} s it is asked again"
        )
        silence = Silence(self._quiet, lambda: emit(Delta("silent", told)))
        with silence, _heard_by(silence):
            return await self._whole(client, request, emit)

    async def _whole(self, client: AsyncAnthropic, request: Request, emit: OnDelta) -> Answer:
        begun = False
        async with _ours(), client.messages.stream(**parameters(request)) as stream:
            async for event in stream:
                begun = begun or event.type == "message_start"
                if event.type == "text":
                    emit(Delta("text", event.text))
                elif event.type == "thinking" and event.thinking:
                    emit(Delta("thinking", event.thinking))
            if not begun:
                raise ModelOverloaded("Anthropic's answer was cut off", "nothing was sent")
            return _answer(await stream.get_final_message())

    async def _open(self) -> AsyncAnthropic:
        if self._client is None:
            await load(*_HEAVY)
            self._client = self._client or self._connect(self._secret())
        return self._client

    def _connect(self, secret: str) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient, Timeout

        return AsyncAnthropic(
            api_key=secret,
            base_url=self._base_url,
            max_retries=0,
            timeout=Timeout(self._idle, connect=min(10.0, self._idle)),
            http_client=DefaultAsyncHttpxClient(event_hooks={"request": [_gated], "response": [_listened]}),
        )

    def _load_key(self) -> None:
        """Read the key again; calls that are under way keep their connections."""
        secret = self._secret()
        if self._client is not None:
            self._client = self._client.with_options(api_key=secret)

    def _secret(self) -> str:
        secret = self._key().strip()
        if not secret:
            raise ModelRefused("there is no key for Anthropic", "ANTHROPIC_API_KEY is empty", _KEY_FIX)
        if not (secret.isascii() and secret.isprintable()):
            raise ModelRefused(
                "the key for Anthropic cannot be one", "it holds characters no key has", _KEY_FIX
            )
        return secret


async def _gated(sent: Sent) -> None:
    """Let the transport ask once more when it has a connection, and before the last part of what is sent.

    Making one takes time, in which much may end; and nothing is bought before the whole request is there.
    """
    gate = _gate.get()

    async def trace(event: str, _info: object) -> None:
        if gate is not None and event.endswith(_SENDING):
            await gate()

    sent.extensions["trace"] = trace


@contextmanager
def _heard_by(silence: Silence) -> Iterator[None]:
    before = _silence.set(silence)
    try:
        yield
    finally:
        _silence.reset(before)


async def _listened(response: Response) -> None:
    """Count all that comes as a sign of life, pings too, which the SDK keeps to itself."""
    if (silence := _silence.get()) is not None:
        silence.heard()
        response.stream = _stream_that_tells(response.stream, silence.heard)


def _stream_that_tells(stream: Any, heard: Callable[[], None]) -> Any:
    import httpx2

    class Telling(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in stream:
                heard()
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Telling()


def _unheard(_delta: Delta) -> None:
    return None


def _answer(message: Message) -> Answer:
    if message.stop_reason is None:
        raise ModelOverloaded("Anthropic's answer was cut off", "the stream ended without a stop reason")
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
    )


@asynccontextmanager
async def _ours() -> AsyncIterator[None]:
    """Turn whatever the SDK and its transport raise into errors of ours."""
    import anthropic
    import httpx2

    try:
        yield
    except anthropic.APIStatusError as error:
        raise _status_error(error) from error
    except anthropic.APIConnectionError as error:
        if isinstance(error.__cause__, PromptDockError):  # it was not sent, for a reason of ours
            raise error.__cause__ from None
        raise _transport_error(error.__cause__ or error) from error
    except httpx2.TransportError as error:
        raise _transport_error(error) from error
    except ValueError as error:  # an event that is no JSON
        raise ModelOverloaded("Anthropic's answer was cut off", str(error)) from error
    except anthropic.AnthropicError as error:
        raise ModelError("Anthropic could not be asked", f"{type(error).__name__}: {error}") from error


def _transport_error(cause: BaseException) -> ModelError:
    import httpx2

    why = f"{type(cause).__name__}: {cause}".rstrip(": ")
    if isinstance(cause, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
        return ModelError("Anthropic could not be asked", why, "check ANTHROPIC_BASE_URL and the key")
    if isinstance(cause, httpx2.TimeoutException):
        return ModelOverloaded("Anthropic is silent", why)
    return ModelOverloaded("the connection to Anthropic was lost", why)


def _status_error(error: APIStatusError) -> ModelError:
    """The error for a status, or for an error event inside a stream that began with 200."""
    status, kind = error.status_code, error.type or ""
    why = f"{error.api_message or error.message} (HTTP {status}{', ' if kind else ''}{kind})"
    if status in (401, 403) or kind in _KEY_TYPE:
        return ModelRefused("Anthropic does not take the key", why, _KEY_FIX)
    again = error.response.headers.get("x-should-retry")
    busy = status in _BUSY_STATUS or status >= 500 or (status == 200 and kind in _BUSY_TYPE)
    if again != "false" and (busy or again == "true"):
        limited = status == 429 or kind == "rate_limit_error"
        what = "Anthropic asks us to slow down" if limited else "Anthropic is overloaded"
        return ModelOverloaded(what, why, retry_after=_retry_after(error))
    if status == 404:
        return ModelUnusable("Anthropic does not know what was asked for", why, _MODEL_FIX)
    if status == 402 or kind == "billing_error" or "credit balance" in why:
        return ModelUnusable("Anthropic gives no more credit", why, "add credit to the account of this key")
    return ModelError("Anthropic did not accept the request", why)


def _retry_after(error: APIStatusError) -> float | None:
    """Seconds to wait, from the header `retry-after-ms` or `retry-after` (seconds or a date)."""
    headers = error.response.headers
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError):
        return None
