"""A Chatter whose model answers at once: `python -m benchmarks.chatter`, on the REDIS_URL and home it is given.

Everything but the model is real, so that what is left is the worker's own cost of a turn.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from shared.models.base import Answer, Model, OnDelta, Request, Usage
from shared.worker import parts
from shared.worker.main import main

AGENTS = Path(__file__).resolve().parents[1] / "agents"


class Instant(Model):
    """Says the same at once."""

    name, demo = "instant", True

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        return Answer(({"type": "text", "text": "x" * 200},), "end_turn", Usage(), "instant", demo=True)

    async def models(self) -> list[str]:
        return ["instant"]

    async def check(self) -> None:
        return None


if __name__ == "__main__":
    with mock.patch.object(parts, "make_model", return_value=Instant()):
        main(AGENTS / "chatter")
