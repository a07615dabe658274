"""A message that replies to what the queue does not know: the Store may, and then it goes on where that was said.

It has a thread of its own already, by which it goes where nobody knows what it replies to: nothing is lost.
"""

from __future__ import annotations

from shared import log, people
from shared.conversation import threads
from shared.errors import StoreUnavailable
from shared.store.base import Store
from shared.turns import outbox
from shared.turns.threads import way
from shared.turns.turn import Turn
from shared.worker.runners.inputs import TurnInput

UNKNOWN = "What this replies to is not known here, so it is held in a conversation of its own{number}."
_AWAY = "What this replies to cannot be looked up now, so it is held in a conversation of its own{number}."
NOTE = "What this replies to is not known: it may refer to something that was not said here."


async def sought(store: Store, turn: Turn, given: TurnInput) -> str | None:
    """What the person is told of their reply, "" for nothing; None where the turn went to where it belongs."""
    seeks = turn.thread.seeks
    if not seeks or turn.records or not given.said or given.said[0].reply_to != seeks:
        return ""
    said, number = given.said[0], f", #{turn.thread.number}" if turn.thread.number else ""
    signed = people.signs(said.user_id)
    try:
        found = await threads.replied(store, said.channel or "", signed, seeks)
    except StoreUnavailable:
        return _AWAY.format(number=number)
    if found is None or found[0] == turn.session:
        return UNKNOWN.format(number=number)
    session, ref = found
    moved = outbox.pack([threads.moved([entry.id for entry in turn.given], turn.session, session)])
    if not await turn.move(session, ref, moved, way(said, signed)):
        return UNKNOWN.format(number=number)  # whose it is, is told to nobody else
    log.get().info("A reply goes on where that was said", of=session, begun=turn.session)
    return None
