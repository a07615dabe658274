"""A turn for one message that is not part of its conversation: it is answered with one output, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from shared.bus import messages
from shared.bus.keys import CHATTER_OUTPUT, Names
from shared.errors import PromptDockError
from shared.turns.queue import Completion
from shared.turns.turn import Turn


def given(turn: Turn) -> messages.AnyHuman:
    """The message that opened the turn."""
    return messages.human(turn.given[0].message())


class Aside:
    """Answers one such message; made anew for each turn, and come to the same when it is made again."""

    def __init__(self, names: Names, turn: Turn) -> None:
        self._names, self._turn, self._message = names, turn, given(turn)

    @property
    def deadline(self) -> int:
        """Never too late to be told that it is too late."""
        return 0

    async def run(self) -> None:
        """Do what the message asks for, and say what became of it."""
        raise NotImplementedError

    async def stopped(self) -> None:
        """There is nothing of it that could be stopped."""
        await self.run()

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """It cannot be answered; whoever sent it is told."""
        await self._close("error", error.told(), dead=dead)

    async def _close(
        self, status: messages.Status, text: str, more: Sequence[str] = (), dead: str = ""
    ) -> None:
        """The one output; `more` are other messages that it answers too."""
        channel = self._names.channel(CHATTER_OUTPUT)
        output = messages.Output(
            user_id=self._message.user_id,
            content=text,
            status=status,
            id=f"{self._turn.id}.end",
            session_id=self._message.session,
            in_reply_to=self._turn.id,
            answers=[self._turn.id, *more],
            channel=getattr(self._message, "channel", None),
        )
        output = await self._turn.queue.placed(output)
        await self._turn.finish(Completion(channel=channel, output=output.text(channel), dead=dead))
