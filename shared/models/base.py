"""What a model is to us.

Above stands the loop, which is handed a `Model` and knows nothing else. Below stand the implementations
side by side, one module a provider, and `demo` (scripted, no network, no cost); `factory` names them all.
Blocks are dicts in the form of the Messages API, also inside other providers' adapters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Block = dict[str, Any]
ModelMessage = dict[str, Any]  # {"role": "user" | "assistant", "content": str | list[Block]}


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model is shown it; `schema` is JSON Schema of an object.

    A `deferred` one is sent, but the model sees it only after a tool_reference to it; see `Model.defers`.
    """

    name: str
    description: str
    schema: dict[str, Any]
    deferred: bool = False


async def _free() -> None:
    """Nothing stands against asking."""


@dataclass(frozen=True)
class Request:
    """One call of a model. `system` parts go stable first, so that the provider's cache holds.

    `ours` is awaited at the last moment before each try is sent; what it raises is raised in place of an answer.
    """

    model: str
    system: tuple[str, ...]
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 4096
    temperature: float | None = None
    agent: str = ""
    deadline: float = 600.0  # seconds that all tries together may take
    patience: float | None = None  # seconds after which none is begun any more, where that is sooner
    ours: Callable[[], Awaitable[None]] = _free


@dataclass(frozen=True)
class Usage:
    """Tokens of one call, and its price in dollars where it is known."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.cost + other.cost,
        )


StopReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
]


@dataclass(frozen=True)
class Answer:
    """A whole answer. `content` are the blocks as the provider sent them, to be sent back unchanged.

    `provider` is who gave it, by the name of its adapter; `notes` are words for the person about how it came about.
    """

    content: tuple[Block, ...]
    stop_reason: StopReason
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    demo: bool = False
    provider: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Delta:
    """A piece of an answer while it streams, or word that the provider makes us wait.

    The pieces before a `waiting` one are void: the answer begins anew after it. After a `silent` one they hold.
    """

    kind: Literal["text", "thinking", "waiting", "silent"]
    text: str


OnDelta = Callable[[Delta], None]


class Model(ABC):
    """A provider of answers.

    `answer` is the one owner of retries: it comes back with a whole answer or raises ModelRefused (the key),
    ModelOverloaded (was tried again, still failing) or ModelError. It may be cancelled at any time.
    """

    name: str = ""
    called: str = ""  # by people, in the log
    recommended: str = ""  # the name of the model that answers where none is chosen
    demo: bool = False

    @abstractmethod
    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        """Ask for one answer; pieces of it go to `on_delta` as they come."""

    @abstractmethod
    async def models(self) -> list[str]:
        """The names that may stand in `Request.model`, newest first."""

    @abstractmethod
    async def check(self) -> None:
        """Raise ModelRefused if the key is not taken, ModelError if the provider cannot be asked."""

    def defers(self, model: str) -> bool:
        """Whether that model takes deferred tools, and tool_reference blocks in results that reveal them."""
        return False

    async def need(self, model: str) -> None:  # noqa: B027 - one that cannot say says nothing
        """ModelUnusable, with the nearest names, where there is no model of that name."""

    def warmest(self, model: str) -> float:
        """The highest temperature that its provider takes; the lowest is 0 everywhere."""
        return math.inf

    def speaker(self, model: str) -> str:
        """Whose that model is, as people call it in the log."""
        return self.called

    def hurry(self) -> None:  # noqa: B027 - not every model makes anybody wait
        """Keys or addresses changed: who waits to try again does so now."""

    async def warm(self) -> None:  # noqa: B027 - not every model is slow to begin with
        """Load what the first answer would wait for; never in the way of what else runs."""

    async def close(self) -> None:  # noqa: B027 - not every model holds something open
        """Give back connections."""
