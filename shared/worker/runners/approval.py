"""A person's answer to a request for permission, in a turn of its own: taken in, told to who waits, closed."""

from __future__ import annotations

from shared.bus import messages
from shared.bus.keys import Names
from shared.turns.queue import Completion
from shared.turns.turn import Turn
from shared.worker.permissions.service import ApprovalService
from shared.worker.runners.aside import Aside, given


def answers_leave(turn: Turn) -> bool:
    """Whether the turn was opened by such an answer: each has a session of its own, which is not its sender's."""
    if not turn.session.startswith(("approval:", "asks:")) or not turn.given:
        return False
    message = given(turn)
    return isinstance(message, messages.ApprovalMessage) or (
        isinstance(message, messages.Said) and message.session != turn.session
    )


class ApprovalRunner(Aside):
    """Takes one answer in."""

    def __init__(self, approvals: ApprovalService, names: Names, turn: Turn) -> None:
        super().__init__(names, turn)
        self._approvals = approvals

    async def run(self) -> None:
        """Settle it. Where it counts in a turn that answers people, that turn's closing output answers it too."""
        if isinstance(self._message, messages.ApprovalMessage):
            settled = await self._approvals.settle(self._message)
        elif isinstance(self._message, messages.Said):
            settled = await self._approvals.word(self._message)
        else:
            settled = None
        if settled and settled.quiet:
            await self._turn.finish(Completion())
        elif settled:
            await self._close("complete" if settled.ok else "error", settled.text)
