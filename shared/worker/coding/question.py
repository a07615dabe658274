"""A question to an agent that works on tasks alone: it is told what to do in place of asking."""

from __future__ import annotations

import json

from shared import log
from shared.bus import messages
from shared.errors import BadMessage
from shared.turns.turn import Turn
from shared.worker.runners.consult import ConsultRunner

_FIX = (
    "give it a task: assign_task or create_task; a question about the code is for an agent that answers, "
    "as the Researcher"
)


def asks(turn: Turn) -> bool:
    """Whether what opens the turn is no task."""
    return messages.agent({**json.loads(turn.given[0].data), "id": turn.given[0].id}).type != "task"


class QuestionRefusal(ConsultRunner):
    """The turn of such a question. Made anew for each turn."""

    async def run(self) -> None:
        """From claim to finish."""
        what = f"{self.agent} takes tasks, not {self.request.type}s"
        log.get().warning("A request was refused", error=what, request=self.request.id)
        await self.failed(BadMessage(what, "it works in the worktree of a task", _FIX))
