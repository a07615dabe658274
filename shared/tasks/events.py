"""What the bus is told of tasks, on `events:@tasks`: the one place that says it, in the one vocabulary of states.

A transition is published from its row of history, which is written with it: so it is out whatever dies, once, and
whoever made it. What a worker does within a state, or with a task that has no row, it tells as news.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from shared.bus.base import Bus
from shared.bus.event_stream import EventStream
from shared.bus.keys import TASKS, Names
from shared.store.records import Task, TaskEvent
from shared.tasks import states

# What a worker says of its task -> the state of the task then. How it came out leads where its transitions lead.
_STATUS = {
    "assigned": "ASSIGNED",
    "started": "IN_PROGRESS",
    "verifying": "IN_PROGRESS",
    "question": "WAITING_INPUT",
    **{how: states.after(events) for how, events in states.OUTCOMES.items()},
}


class TaskEvents:
    """Publishes inside of `async with`: at its end all is out."""

    def __init__(self, bus: Bus, names: Names) -> None:
        self._live = EventStream(bus, names, TASKS)

    async def __aenter__(self) -> TaskEvents:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self._live.close()

    def transition(self, event: TaskEvent, task: Task | None, project: str | None) -> None:
        """A row of history: of a task, or of a project."""
        at = event.created_at.isoformat()
        if event.task_id == event.project_id:
            change = event.event.removeprefix("project_")
            self._live("project", {"change": change, "actor": event.actor, "at": at, **event.detail})
            return
        told = {
            "task_id": task.slug if task else str(event.task_id),
            "project": project,
            "change": event.event,
            "from": event.from_status,
            "state": event.to_status,
            "status": event.to_status,
            "actor": event.actor,
            "agent": task.assignee if task else None,
            "at": at,
        }
        self._live("task", told)

    def news(self, task: str, what: str, agent: str, **more: Any) -> None:
        """What a worker does with a task, in a word of its own (`state`); `status` is the state that it is in then."""
        status = {"status": _STATUS[what]} if what in _STATUS else {}
        told = {"task_id": task, "state": what, **status, "agent": agent, **more}
        self._live("task", told)
