"""What a person was not shown when it was said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from shared import log, people
from shared.bus.keys import CHATTER_OUTPUT
from shared.bus.messages import Output
from shared.turns.queue import Keep
from shared.worker.connection import Connection


def missed(untold: Sequence[tuple[str, bytes]], user_id: str) -> Iterator[tuple[str, Output]]:
    """Of a session's outputs that no gateway acknowledged, those to this person, oldest first."""
    for id, text in untold:
        try:
            output = Output.model_validate_json(text)
        except ValidationError as error:
            log.get().warning("What was not shown cannot be read", why=str(error))
            continue
        if output.user_id == people.called(user_id):
            yield id, output


async def news(connection: Connection) -> Keep:
    """How long to keep what nobody asked for just now: our gateways listen by a pattern, and are not counted."""
    heard = await connection.bus.listeners(connection.names.channel(CHATTER_OUTPUT))
    return "news" if heard else "always"
