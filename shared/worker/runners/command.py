"""A stop or an amendment for a turn that does not run: what became of it is told, and nothing else is touched."""

from __future__ import annotations

from shared.bus import messages
from shared.turns.turn import Turn
from shared.worker.runners.aside import Aside

_APART = "apart:"
_NOT_STOPPED = {
    "done": "That has ended already. Nothing was stopped.",
    "withdrawn": "That was taken back already. Nothing was stopped.",
    "accepted": "That does not run in this session. Nothing was stopped.",
    "": "Nothing of that name is known here. Nothing was stopped.",
}
_NOT_AMENDED = {
    "done": "The turn that this was to amend has ended already. Send it as a message.",
    "withdrawn": "The turn that this was to amend was taken back. Send it as a message.",
    "accepted": "The turn that this was to amend does not run yet. Send it as a message.",
    "": "Nothing that this could amend is known here. Send it as a message.",
}


def apart(turn: Turn, human: str) -> bool:
    """Whether the turn was opened by what names another turn: each has a session of its own."""
    return turn.session.startswith(_APART) and bool(turn.given) and turn.given[0].channel == human


class CommandRunner(Aside):
    """Answers one such message."""

    async def run(self) -> None:
        """Say what became of what it names; a message that waited and was taken back by it is closed too."""
        message = self._message
        named = getattr(message, "turn_id", None) or getattr(message, "request_id", None) or ""
        state = await self._turn.queue.state(named)
        if isinstance(message, messages.Amend):
            await self._close("error", _NOT_AMENDED.get(state, _NOT_AMENDED[""]))
        elif await self._turn.queue.taken_back(named) == self._turn.id:
            await self._close("complete", "Stopped before it was begun.", [named])
        else:
            await self._close("error", _NOT_STOPPED.get(state, _NOT_STOPPED[""]))
