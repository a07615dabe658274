"""A provider that makes a turn wait: the person hears of it, at once and then every while."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from shared.errors import PromptDockError
from shared.loop import PublishEvent

_TOLD = 15.0  # seconds of waiting for a provider after which the person hears of it


def waiting_notice(
    live: PublishEvent, say: Callable[[str], Awaitable[None]], spawn: Callable[[Any], None]
) -> PublishEvent:
    """`live`, which also tells the person when the provider makes us wait: at once, then every while."""
    told: list[float] = []

    async def tell(text: str) -> None:
        with contextlib.suppress(
            PromptDockError
        ):  # the turn, which goes on beside this, finds that out for itself
            await say(text)

    def take(kind: str, payload: dict[str, Any]) -> None:
        live(kind, payload)
        if kind not in ("waiting", "silent"):
            return
        if not told or time.monotonic() - told[0] > _TOLD:
            still = "still makes" if told else "makes"
            told[:] = [time.monotonic()]
            spawn(tell(f"The model provider {still} us wait: {payload['content']}. /stop ends it"))

    return take


_notices: set[asyncio.Future[None]] = set()


def beside(call: Coroutine[Any, Any, None]) -> None:
    """Say something beside what runs."""
    task = asyncio.ensure_future(call)
    _notices.add(task)
    task.add_done_callback(_notices.discard)
