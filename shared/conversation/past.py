"""What a turn goes on from: the newest messages of its conversation, and the summary of those before them.

Redis holds both for a day, so that they are there with the Store down; the truth is in the Store. A conversation
that rested for longer than `CONVERSATION_TIMEOUT` is read from there again, whoever changed it meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shared import log
from shared.bus.keys import DAY
from shared.conversation import summary as summaries
from shared.conversation import window as windows
from shared.errors import StoreUnavailable
from shared.models.base import ModelMessage
from shared.store.base import Store
from shared.store.origin import BEFORE
from shared.turns.queue import Queue
from shared.turns.records import Record, unpack
from shared.turns.turn import Turn

PREFIX = (
    "summary:"  # of the session in which a conversation's summaries are made, whose window holds the newest
)


@dataclass
class History:
    """The window oldest first, the number of the last message, and the summary of what came before."""

    window: list[Record] = field(default_factory=list)
    seq: int = 0
    summary: Record | None = None
    replaces: int | None = None  # so many records in Redis, which the Store knows better

    def messages(self, now: int) -> list[ModelMessage]:
        """As the model is shown it: what is in the summary, or older than a day, is not shown itself."""
        last = self._told
        fresh = summaries.after(self.window, last)
        young = {item["turn"] for item in fresh if item["at"] > now - DAY * 1000}
        shown = [item for item in fresh if item["turn"] in young]
        untold = (shown[0]["seq"] - 1 if shown else self.seq) - max(last, self.floor)
        return [*summaries.opening(self.summary, max(0, untold)), *windows.messages(shown)]

    @property
    def floor(self) -> int:
        """The number behind which the window begins: what is before it is not gone on from."""
        return windows.floor(self.window)

    @property
    def foreign(self) -> str:
        """What was read in this conversation that others wrote: each turn hands it on, until a person takes it off."""
        return str(self.window[-1].get(windows.FOREIGN, BEFORE)) if self.window else ""

    def leaves(self, added: list[Record]) -> tuple[int, list[Record]]:
        """What Redis is to hold when `added` come: how many of its records go, and which are appended."""
        drop = windows.surplus(self.window, len(added))
        if self.replaces is None or not added:
            return drop, added
        return self.replaces, [*self.window[drop:], *added]

    def unsummarised(self, added: list[Record]) -> bool:
        """Whether the next summary is due when `added` have come."""
        return bool(summaries.covered([*self.window, *added], self._told))

    def pressing(self, added: list[Record]) -> bool:
        """Whether it is due at once, and not only when the conversation rests."""
        return summaries.pressing([*self.window, *added], self._told)

    @property
    def _told(self) -> int:
        """The number of the last message that the summary tells."""
        return int(self.summary["last"]) if self.summary else 0


async def look_back(store: Store, turn: Turn, rest_ms: int) -> History:
    """The past of a turn's session."""
    held = turn.window if turn.seq is not None else []
    short = (turn.seq or 0) <= summaries.RECENT
    told = None if short else await newest(turn.queue, turn.session, windows.floor(held))
    past = History(held, turn.seq or 0, told)
    if held and turn.claimed_at - held[-1]["at"] <= rest_ms:
        return past
    try:
        found, seq = await windows.recall(store, turn.session)
        if seq < past.seq and held:  # what Redis has is still on its way to the Store
            return past
        told = past.summary or await summaries.stored(store, turn.session)
    except StoreUnavailable as error:
        log.get().warning("The conversation is gone on with as Redis has it", why=str(error))
        return past
    return History(found, max(seq, past.seq), told, turn.held)


async def newest(queue: Queue, session: str, floor: int = 0) -> Record | None:
    """The summary that Redis holds, unless it is of what was before the window began."""
    found = await queue.newest_record(f"{PREFIX}{session}")
    try:
        item = marked(unpack(found)) if found else None
        return item if item and item["last"] > floor else None
    except Exception as error:  # whatever is in it: the Store has it too
        log.get().error("A summary cannot be read", why=str(error)[:200])
        return None


def marked(item: Record) -> Record | None:
    """`item` if it is a summary: a person's own session may have such a name."""
    return item if item.get("k") == "summary" else None
