"""Messages that are acknowledged, as a gateway sends them: posted again until the server has them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from shared.bus import messages, reading
from shared.bus.keys import CHATTER, HUMAN_INPUT, Names
from shared.bus.redis import RedisBus
from shared.turns import routing
from shared.turns.queue import Queue
from tests.support.processes import PATIENCE
from tests.support.wire import Message


def post(url: str, names: Names, sent: Sequence[Message], pause: float = 0.0) -> list[str]:
    """Post one after the other, `pause` seconds apart, and wait for each acknowledgement; what it said."""

    async def work() -> list[str]:
        bus = RedisBus(url, silence=2.0, client_name="promptdock-test")
        queue, outcomes = Queue(bus, names, CHATTER), list[str]()
        try:
            for message in sent:
                data = json.dumps(message | {"via": names.channel(HUMAN_INPUT)}).encode()
                mail = routing.human(names, messages.human(reading.read(data)), data)
                outcomes.append((await queue.post(mail, patience=PATIENCE)).outcome)
                await asyncio.sleep(pause)
        finally:
            await bus.close()
        return outcomes

    return asyncio.run(work())
