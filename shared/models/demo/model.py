"""The demo model: deterministic, free, without network and without state.

Its answer is a function of the request alone (agent, offered tools, messages), so that a turn which is taken
over by another worker goes on as it began. It says of itself, in every text, that it is the demo.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shared.errors import ModelUnusable
from shared.models import sight
from shared.models.base import Answer, Block, Delta, Model, OnDelta, Request, Usage

if TYPE_CHECKING:
    from shared.models.demo.script import Move

NAME = "demo"
PIECES = 4
_CHARACTERS = 4  # of one token, roughly


class DemoModel(Model):
    """The scripted model; `script` says what it does."""

    name = NAME
    called = "the demo model"
    recommended = "demo"
    demo = True

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        """The script's next move, streamed in a few pieces."""
        from shared.models.demo.scene import read
        from shared.models.demo.script import act

        move = act(read(request))
        for piece in _pieces(move.text):
            if on_delta:
                on_delta(Delta("text", piece))
            await asyncio.sleep(0)
        content = tuple(_blocks(move, request))
        asked = "" if request.model in ("", NAME) else request.model
        notes = [f"no provider is configured: the demo model answered, not {asked}"] if asked else []
        notes += [sight.cannot_see("the demo model")] if sight.pictured(request.messages[-1:]) else []
        return Answer(
            content=content,
            stop_reason="tool_use" if move.calls else "end_turn",
            usage=_usage(request, content),
            model=NAME,
            demo=True,
            provider=NAME,
            notes=tuple(notes),
        )

    async def models(self) -> list[str]:
        return [NAME]

    async def check(self) -> None:
        return None

    async def need(self, model: str) -> None:
        if model != NAME:
            why = "no provider of models is configured, so that the scripted demo model answers"
            raise ModelUnusable(f"there is no model {model[:100]!r}", why, "promptdock key set")


def _blocks(move: Move, request: Request) -> Iterator[Block]:
    if move.text:
        yield {"type": "text", "text": move.text}
    # made from the whole conversation, so that no two calls of a session share an id
    seed = hashlib.sha256(json.dumps(request.messages, sort_keys=True).encode()).hexdigest()[:20]
    for place, (name, arguments) in enumerate(move.calls):
        yield {"type": "tool_use", "id": f"toolu_demo_{seed}_{place}", "name": name, "input": arguments}


def _pieces(text: str) -> Iterator[str]:
    """`text` in up to PIECES pieces, cut between words; joined they are the text."""
    words = re.findall(r"\s*\S+\s*$|\s*\S+", text)
    size = max(1, -(-len(words) // PIECES))
    return ("".join(words[at : at + size]) for at in range(0, len(words), size))


def _usage(request: Request, content: tuple[Block, ...]) -> Usage:
    """Rough counts, so that budgets and displays have something to show; the price is nothing."""
    seen = json.dumps(sight.unseen(request.messages))
    asked = sum(len(part) for part in request.system) + len(seen)
    return Usage(input=asked // _CHARACTERS, output=len(json.dumps(content)) // _CHARACTERS)
