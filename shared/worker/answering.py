"""A person's answer to a request for permission, in a turn of its own: taken in, told to who waits, closed."""

from __future__ import annotations

import json

from shared.bus import messages
from shared.bus.keys import CHATTER_OUTPUT
from shared.errors import PromptDockError
from shared.turns.desk import Ending
from shared.turns.turn import Turn
from shared.worker.asking import Asking
from shared.worker.parts import Parts


def _given(turn: Turn) -> messages.AnyHuman:
    return messages.human({**json.loads(turn.given[0].data), "id": turn.given[0].id})


def answers_leave(turn: Turn) -> bool:
    """Whether the turn was opened by such an answer: each has a session of its own, which is not its sender's."""
    if not turn.session.startswith(("approval:", "asks:")) or not turn.given:
        return False
    message = _given(turn)
    return isinstance(message, messages.Approval) or (
        isinstance(message, messages.Said) and message.session != turn.session
    )


class Answering:
    """Takes one answer in; made anew for each turn, and come to the same when it is made again."""

    def __init__(self, parts: Parts, turn: Turn) -> None:
        self._parts, self._turn, self._asking = parts, turn, Asking(parts)
        self._message = _given(turn)

    @property
    def deadline(self) -> int:
        """Never too late to be told that it is too late."""
        return 0

    async def run(self) -> None:
        """Settle it. Where it counts in a turn that answers people, that turn's closing output answers it too."""
        if isinstance(self._message, messages.Approval):
            settled = await self._asking.settle(self._message)
        elif isinstance(self._message, messages.Said):
            settled = await self._asking.word(self._message)
        else:
            settled = None
        if settled and settled.quiet:
            await self._turn.finish(Ending())
        elif settled:
            await self._close("complete" if settled.ok else "error", settled.text)

    async def stopped(self) -> None:
        """There is nothing of it that could be stopped."""
        await self.run()

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """It cannot be taken in; whoever sent it is told."""
        await self._close("error", error.told(), dead)

    async def _close(self, status: messages.Status, text: str, dead: str = "") -> None:
        channel = self._parts.names.channel(CHATTER_OUTPUT)
        output = messages.Output(
            user_id=self._message.user_id,
            content=text,
            status=status,
            id=f"{self._turn.id}.end",
            session_id=self._message.session,
            in_reply_to=self._turn.id,
            answers=[self._turn.id],
        )
        await self._turn.finish(Ending(channel=channel, output=output.text(channel), dead=dead))
