"""`pending`: what waits."""

from __future__ import annotations

import time

from gateways.cli import screen
from shared.client import Client
from shared.client.views import pending as waiting
from shared.settings import Settings


async def show(settings: Settings, as_json: bool) -> None:
    """Accepted messages that have not ended."""
    async with Client(settings) as client:
        rows = await waiting.pending(client)
    if as_json:
        screen.document("pending", pending=rows)
        return
    now = time.time()
    heads = ("agent", "state", "age", "session", "id", "waits for", "content")
    told = [
        (
            r["agent"],
            r["state"],
            screen.ago(now - r["accepted_ms"] / 1000),
            r["session"],
            r["id"],
            r["waits_for"],
            r["content"],
        )
        for r in rows
    ]
    screen.table(told, heads, "Nothing waits: every accepted message has ended.")
