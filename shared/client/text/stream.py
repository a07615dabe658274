"""The answers of a session on somebody's screen, block by block as their events bring them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from shared.bus.messages import Output
from shared.client.text.blocks import TextBlock, Writing
from shared.client.text.safe import labelled
from shared.client.types import Event

_GATHERED = 0.1  # seconds in which a worker gathers events before it sends them
_BEHIND = 0.3  # seconds that the events of what was said may come behind a note of it
Write = Callable[[Sequence[TextBlock], bool], None]


class Stream:
    """`write` is handed each block once, and whether it is the demo's; `note` a line beside them."""

    def __init__(self, write: Write, note: Callable[[str], None]) -> None:
        self._to, self._note = write, note
        self._writing, self._turn, self._demo = Writing(), "", False
        self._running = False
        self._part = self._parts = 0  # the answer of the model that comes, and how many are shown whole
        self._quiet = asyncio.Event()  # no block is open
        self._quiet.set()

    @property
    def open(self) -> str:
        """The block that is being written."""
        return self._writing.open

    def take(self, event: Event) -> None:
        """What an event finishes is written."""
        match event.kind:
            case "start":
                self._running = True
                turn = str(event.payload.get("turn_id", ""))
                self._writing.begin(fresh=turn != self._turn)
                self._parts = 0 if turn != self._turn else self._parts
                self._turn, self._demo = turn, event.payload.get("model") == "demo"
                self._told(event.payload.get("said"))
            case _ if not self._running:
                pass  # we came in the middle of it: it is shown when it is whole
            case "waiting":
                self._writing.begin(fresh=False)
            case "chunk":
                self._part = int(event.payload.get("part") or 0)
                self._write(self._writing.add(str(event.payload.get("content", ""))))
            case "tool_call":
                self._write(self._writing.pause())
                self._parts = self._part
            case "done" | "error":
                self._running = False
        (self._quiet.clear if self.open.strip() else self._quiet.set)()

    def _told(self, said: object) -> None:
        """What the worker before said in answers that it had ended, and did not live to tell."""
        for number, text in enumerate(said if isinstance(said, list) else [], 1):
            if number > self._parts:
                self._write(self._writing.add(str(text)))
                self._write(self._writing.pause())
                self._part = self._parts = number

    async def settle(self) -> None:
        """Let what was said before a note come before it."""
        if self._running:
            await asyncio.sleep(_GATHERED)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BEHIND):
                await self._quiet.wait()

    def of(self, output: Output) -> bool:
        """Whether it closes the turn whose events came last."""
        return bool(self._turn) and self._turn in output.answers

    def end(self, output: Output) -> None:
        """Write what is left of an answer that `of` says is streamed; of one that failed, what came of it."""
        if output.status == "error":
            self._write(self._writing.pause())
            return
        said = output.content if self._writing.begun else labelled(output.content, output.demo)
        asked = output.question if output.status == "awaiting_input" else None
        if asked and asked not in said:
            said = f"{said}\n\n{asked}"
        self._demo = bool(
            output.demo or not output.model
        )  # else they are a model's words, and stay as they are
        self._write(self._writing.end(said))

    def _write(self, written: list[TextBlock]) -> None:
        if self._writing.differed:
            self._writing.differed = False
            self._note("the answer was begun anew")
        if written:
            self._to(written, self._demo)
