"""The threads of the channels in which a person speaks, and ending one."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from shared.bus.keys import HUMAN_INPUT
from shared.client.client import Client
from shared.client.types import Card
from shared.conversation import threads as known
from shared.errors import PromptDockError, StoreUnavailable, TimedOut
from shared.turns import threads
from shared.turns.threads import Thread

PATIENCE = 20.0  # seconds in which what runs has ended


async def listed(client: Client, user: str, channel: str = "") -> list[Card]:
    """Those that have a number now, by channel and number; of one channel, or of all."""
    found = await _there(client, user, channel)
    try:
        return await known.called(await client.store(), found)
    except StoreUnavailable:
        return known.cards(found, {})


async def kill(client: Client, user: str, number: int, channel: str = "", patience: float = PATIENCE) -> str:
    """End what runs in a thread, and take back what waits there; what came of it, in words. TimedOut.

    To one that is finished nothing is sent: it would count as said there, and hold the number for longer.
    """
    thread = threads.numbered(await _there(client, user, channel), number)
    if not thread.active:
        ended = "was killed already" if thread.state == "killed" else "is finished"
        return f"#{thread.number} of {thread.channel} {ended}: nothing runs in it. It goes on with a reply."
    id = str(uuid4())
    async with client.outputs() as heard:
        await client.send(HUMAN_INPUT, threads.kill(thread, user, id))
        try:
            async with asyncio.timeout(patience):
                async for item in heard:
                    if id in item.output.answers:
                        return _told(thread, item.output.status == "error", item.output.content)
        except TimeoutError:
            pass
    raise TimedOut(
        f"#{number} has not ended in {patience:.0f} s",
        "it is told to; where no Chatter runs it ends when one does",
        "see promptdock thread list",
    )


async def _there(client: Client, user: str, channel: str) -> list[Thread]:
    return await threads.listed(client.bus, client.names, user, channel)


def _told(thread: Thread, failed: bool, text: str) -> str:
    if failed:
        raise PromptDockError(f"#{thread.number} was not killed", text, "see promptdock thread list")
    return f"#{thread.number} of {thread.channel} is killed; it goes on with the next reply."
