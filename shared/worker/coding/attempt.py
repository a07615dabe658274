"""A task's turn as it comes in: its request, its row, who asks, and how its asker hears of it. No files yet."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from shared.bus import messages
from shared.bus.activity import stream_of
from shared.tasks.names import slug
from shared.turns.turn import Turn
from shared.worker.coding.progress import TaskProgress
from shared.worker.permissions.approver import Approver, asked_by
from shared.worker.resources import Resources
from shared.worker.runners.agent import AgentRunner
from shared.worker.runners.task_run import Payload, TaskRun


@dataclass(frozen=True)
class Attempt:
    """One try of one task by one agent."""

    agent_runner: AgentRunner
    turn: Turn
    request: messages.AgentMessage
    task: TaskRun
    progress: TaskProgress

    @classmethod
    def of(cls, agent_runner: AgentRunner, turn: Turn) -> Attempt:
        """What a turn was given; BadMessage where that is no request."""
        request = messages.agent({**json.loads(turn.given[0].data), "id": turn.given[0].id})
        resources, profile = agent_runner.resources, agent_runner.profile
        task = TaskRun(
            *(resources.connection, resources.store, resources.model.demo, profile.name, turn, request),
            profile.works_on,
        )
        activity, asked = turn.activity, asked_by(request)
        activity.kind, activity.task, activity.title = "task", task.id, task.title
        activity.user, activity.session = asked.user_id, asked.session
        activity.events = stream_of(profile.name, turn.session)
        return cls(agent_runner, turn, request, task, TaskProgress(agent_runner.replies, request))

    async def current(self) -> Attempt:
        """With its agent as it is now: from here on it changes no more."""
        return replace(self, agent_runner=await self.agent_runner.current())

    @property
    def resources(self) -> Resources:
        """What the worker has."""
        return self.agent_runner.resources

    @property
    def agent(self) -> str:
        """Who works on it."""
        return self.agent_runner.profile.name

    @property
    def payload(self) -> Payload:
        """What the request says."""
        return self.request.payload

    @property
    def approver(self) -> Approver:
        """For whom it is done, and who is asked for permission."""
        return asked_by(self.request)

    @property
    def scratch(self) -> Path:
        """A folder of the task's own beside its worktree."""
        return self.resources.settings.home / "executors" / slug(self.task.id)
