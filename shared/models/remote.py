"""What the adapters of providers behind HTTP share: keys, retries, silence, and errors in words of ours.

The libraries' own retries are off: they stop once a stream has begun, and a stream that is stalled, cut, or ended
without a stop reason raises nothing that they know. The transport's read timeout is the watchdog: it counts from
byte to byte, so that pings keep a long thought alive and silence does not.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from math import isnan
from typing import TYPE_CHECKING, Any, TypeVar

from shared.errors import ModelError, ModelOverloaded, ModelRefused, ModelUnusable
from shared.models.base import Answer, Delta, Model, OnDelta, Request
from shared.models.loading import load
from shared.models.retry import Naps, persist
from shared.models.silence import Silence

if TYPE_CHECKING:
    from httpx2 import Request as Sent
    from httpx2 import Response, Timeout

IDLE = 60.0
QUIET = 15.0  # seconds of silence after which the person hears of it
TRIES = 4  # of a question about the account, for whose answer somebody sits and waits
ASK_DEADLINE = 30.0  # seconds for questions about the account: which models, does the key work
LONGEST_ASKED = 86_400.0  # seconds to wait that a provider's header is believed
KEY_FIX = "set one that it takes: promptdock key set"
MODEL_FIX = (
    "set PROMPTDOCK_MODEL, or the agent's own such as CHATTER_MODEL, to one that promptdock models lists"
)

_BUSY_STATUS = frozenset({408, 409, 429})
_SENDING = ("send_request_headers.started", "send_request_body.started")
# What is awaited before this task's request is sent.
_gate: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("gate", default=None)
# Told of each byte that comes for this task.
_silence: ContextVar[Silence | None] = ContextVar("silence", default=None)

T = TypeVar("T")


class RemoteModel(Model):
    """A provider behind HTTP. `key` is called before each try, and once more when the key is not taken.

    `idle` is how many seconds a stream may be silent, `quiet` after how many of them that is said; `base` is the
    unit of the jitter between tries.
    After a `waiting` delta the pieces that were streamed before it are void: the answer begins anew.
    """

    company = ""  # for people
    key_name = ""  # the variable that holds its key
    address_name = ""  # the variable that holds its address
    heavy: tuple[
        str, ...
    ] = ()  # imported in a thread: seconds on the event loop would cost a worker its lease

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
        self._naps, self._used = Naps(), ""  # the key of the last try

    @abstractmethod
    async def _ask(self, request: Request, emit: OnDelta) -> Answer:
        """One try at a whole answer; raises errors of ours."""

    @abstractmethod
    async def _list(self, limit: int) -> list[str]:
        """One try at the list of models; raises errors of ours."""

    @abstractmethod
    def _load_key(self) -> None:
        """Read the key again; calls that are under way keep their connections."""

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        """One whole answer. Text blocks without words are left out, since none may be sent back."""
        self._warm_enough(request)
        emit = on_delta or _unheard
        told = f"{self.company} has been silent for {self._quiet:.0f} s; after {self._idle:.0f} s it is asked again"

        async def ask() -> Answer:
            _gate.set(request.ours)
            silence = Silence(self._quiet, lambda: emit(Delta("silent", told)))
            with silence, _heard_by(silence):
                return await self._ask(request, emit)

        async def attempt() -> Answer:
            return await self._with_key(ask)

        return await persist(
            attempt,
            deadline=request.deadline,
            patience=request.patience,
            tell=lambda text: emit(Delta("waiting", text)),
            base=self._base,
            naps=self._naps,
        )

    def _warm_enough(self, request: Request) -> None:
        """ModelError for a temperature that the provider does not know."""
        given, most = request.temperature, self.warmest(request.model)
        if given is not None and given > most:
            raise ModelError(
                f"{request.model} cannot be asked with a temperature of {given:g}",
                f"{self.called} takes 0 to {most:g}",
                f"send at most {most:g}, or name a model of another provider",
            )

    async def models(self) -> list[str]:
        return await self._listed(1000)

    async def check(self) -> None:
        await self._listed(1)

    async def warm(self) -> None:
        await load(*self.heavy)

    def hurry(self) -> None:
        self._naps.wake()

    async def _listed(self, limit: int) -> list[str]:
        async def attempt() -> list[str]:
            return await self._with_key(lambda: self._list(limit))

        return await persist(attempt, deadline=ASK_DEADLINE, tries=TRIES, base=self._base, naps=self._naps)

    async def _with_key(self, call: Callable[[], Awaitable[T]]) -> T:
        self._renew()
        try:
            return await call()
        except ModelRefused:
            self._load_key()
            return await call()

    def _renew(self) -> None:
        """Whoever waited for a while tries again with the key of now; ModelRefused where there is none any more."""
        before, self._used = self._used, self._key()
        if before not in ("", self._used):
            self._load_key()

    def _secret(self) -> str:
        secret = self._key().strip()
        if not secret:
            raise ModelRefused(f"there is no key for {self.company}", f"{self.key_name} is empty", KEY_FIX)
        if not (secret.isascii() and secret.isprintable()):
            raise ModelRefused(
                f"the key for {self.company} cannot be one", "it holds characters no key has", KEY_FIX
            )
        return secret

    def _timeout(self) -> Timeout:
        from httpx2 import Timeout

        return Timeout(self._idle, connect=min(10.0, self._idle))

    def _cut(self, why: str) -> ModelOverloaded:
        return ModelOverloaded(f"{self.company}'s answer was cut off", why)

    def _transport_error(self, cause: BaseException) -> ModelError:
        """The error for a connection that was not made, or did not hold."""
        import httpx2

        why = f"{type(cause).__name__}: {cause}".rstrip(": ")
        if isinstance(cause, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
            fix = f"check {self.address_name}{' and the key' if self.key_name else ''}"
            return ModelError(f"{self.company} could not be asked", why, fix)
        if isinstance(cause, httpx2.TimeoutException):
            return ModelOverloaded(f"{self.company} is silent", why)
        return ModelOverloaded(f"the connection to {self.company} was lost", why)

    def _status_error(
        self,
        status: int,
        why: str,
        headers: Mapping[str, str],
        *,
        refused: bool = False,
        busy: bool = False,
        limited: bool = False,
        broke: bool = False,
    ) -> ModelError:
        """The error for a status; the flags are what the provider's own words say beyond it."""
        if status in (401, 403) or refused:
            return ModelRefused(f"{self.company} does not take the key", why, KEY_FIX)
        if status == 402 or broke:
            return ModelUnusable(
                f"{self.company} gives no more credit", why, "add credit to the account of this key"
            )
        again = headers.get("x-should-retry")
        busy = busy or status in _BUSY_STATUS or status >= 500
        if again != "false" and (busy or again == "true"):
            slow = status == 429 or limited
            what = f"{self.company} asks us to slow down" if slow else f"{self.company} is overloaded"
            return ModelOverloaded(what, why, retry_after=retry_after(headers))
        if status == 404:
            return ModelUnusable(f"{self.company} does not know what was asked for", why, MODEL_FIX)
        return ModelError(f"{self.company} did not accept the request", why)


def no_temperature(model: str, temperature: float) -> str:
    """For the person whose temperature was left out."""
    return f"{model} takes no temperature: {temperature:g} was left out"


def hooks() -> dict[str, list[Callable[..., Any]]]:
    """What a client of a library's transport is made with, so that its requests are gated and heard."""
    return {"request": [_gated], "response": [_listened]}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, at most a day, from the header `retry-after-ms` or `retry-after` (seconds or a date)."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return _bounded(float(headers[name]) / unit)
        except (KeyError, ValueError):
            continue
    try:
        return _bounded(parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError, OverflowError):
        return None


def _bounded(seconds: float) -> float | None:
    """No number at all ("nan") asks for nothing; a header is not believed that a provider is away for years."""
    return None if isnan(seconds) else min(max(0.0, seconds), LONGEST_ASKED)


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
    """Count all that comes as a sign of life, pings too, which the libraries keep to themselves."""
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
