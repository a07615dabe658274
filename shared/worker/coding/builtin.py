"""The built-in executor of coding tasks: our own loop, with file tools and a shell in the worktree."""

from __future__ import annotations

from shared.executors.base import TaskOutcome, TaskWork
from shared.tools.context import Context
from shared.turns.turn import Turn
from shared.worker.permissions.approver import Approver
from shared.worker.runners.agent import AgentRunner


class BuiltinExecutor:
    """Made anew for each turn, whose context its tools are handed."""

    name = "loop"

    def __init__(self, agent_runner: AgentRunner, turn: Turn, context: Context, asked: Approver) -> None:
        self._agent_runner, self._turn, self._context, self._asked = agent_runner, turn, context, asked

    async def run(self, work: TaskWork) -> TaskOutcome:
        """From wherever the journal stands to an answer, or to a question."""
        user = {"role": "user", "content": [{"type": "text", "text": work.command}]}
        done = await self._agent_runner.think(
            self._turn,
            work.system,
            [user],
            self._context,
            work.live,
            work.joined,
            self._asked,
            model=work.model,
            tokens=work.tokens,
        )
        ended = (done.usage, done.model, done.demo, done.spent, done.limit)
        return TaskOutcome(done.text, done.kind, done.question, *ended)
