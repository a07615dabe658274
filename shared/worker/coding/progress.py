"""What whoever asked for a task hears while it is worked on: not too often, and all of it before its end."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from shared import log
from shared.bus.messages import AgentMessage
from shared.errors import PromptDockError
from shared.worker.runners.closing import Replies

_PAUSE = 10.0  # seconds between two lines of what the agent does


class TaskProgress:
    """Of one task."""

    def __init__(self, replies: Replies, request: AgentMessage) -> None:
        self._replies, self._request = replies, request
        self._told = 0.0  # when the last line was said
        self._saying: asyncio.Task[None] | None = None  # what is on its way

    async def say(self, text: str) -> None:
        """Tell it; that it could not be told does no harm to the work."""
        self._told = time.monotonic()
        try:
            await self._replies.progress(self._request, text)
        except PromptDockError as error:
            log.get().debug("TaskProgress was not sent", why=str(error))

    async def say_seldom(self, text: str) -> None:
        """Tell it, unless something was told a moment ago."""
        if self._due:
            await self.say(text)

    def does(self, tool: str, arguments: dict[str, Any]) -> None:
        """Tell what the agent does now; whoever calls does not wait for it."""
        if self._due:
            self._told = time.monotonic()
            told = json.dumps(arguments, ensure_ascii=False)[:160]
            self._saying = asyncio.create_task(self.say(f"{tool} {told}"))

    async def end(self) -> None:
        """Wait for what is on its way."""
        if self._saying is not None:
            await self._saying

    @property
    def _due(self) -> bool:
        return time.monotonic() - self._told > _PAUSE
