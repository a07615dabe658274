"""A Chatter whose model answers at once: `python -m benchmarks.chatter`, on the REDIS_URL and home it is given.

Everything but the model is real, so that what is left is the worker's own cost of a turn.
"""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from shared.models.base import Answer, Model, OnDelta, Request
from shared.models.demo import DemoModel
from shared.worker.main import main

AGENTS = Path(__file__).resolve().parents[1] / "agents"


async def instant(_: Model, request: Request, on_delta: OnDelta | None = None) -> Answer:
    """The same at once, whatever was asked."""
    return Answer(({"type": "text", "text": "x" * 200},), "end_turn", model="instant", demo=True)


if __name__ == "__main__":
    with mock.patch.object(DemoModel, "answer", instant):
        main(AGENTS / "chatter")
