"""What can be told outside: from what Chatter says and what tasks go through, each as one notice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

from shared import people
from shared.bus.messages import RESERVED_SESSIONS, Output
from shared.errors import UsageError
from shared.redaction import redacted
from shared.store.records import Project, Subscription, Task, TaskEvent
from shared.store.row import now

TEST = "test"
# What a person has to do something about; `attention` names them all.
ATTENTION = (
    "approval.requested",
    "question.asked",
    "plan.ready",
    "review.ready",
    "budget.reached",
    "task.blocked",
)
GROUPS: dict[str, tuple[str, ...]] = {
    "attention": ATTENTION,
    "task": ("task.completed", "task.failed", "task.blocked"),
    "turn": ("turn.completed", "turn.failed"),
}
EVENTS = tuple(dict.fromkeys(event for group in GROUPS.values() for event in group))

_OF_STATE = {
    "WAITING_INPUT": "question.asked",
    "AWAITING_PLAN_APPROVAL": "plan.ready",
    "AWAITING_APPROVAL": "review.ready",
    "COMPLETED": "task.completed",
    "FAILED": "task.failed",
    "BLOCKED": "task.blocked",
}
_OF_OUTPUT = {
    "awaiting_approval": "approval.requested",
    "awaiting_input": "question.asked",
    "complete": "turn.completed",
    "error": "turn.failed",
}


@dataclass(frozen=True)
class Notice:
    """One thing that happened. `key` is the same each time it is read; `subject` is what keeps its order."""

    event: str
    key: str
    subject: str
    at: datetime
    data: dict[str, Any]
    path: str  # of the page, where one sees it
    user_id: str = ""
    session: str = ""
    project_id: UUID | None = None

    def body(self, page: str) -> dict[str, Any]:
        """As it is sent: its type, its moment, its address on the page, and the event as streams have it."""
        stamp = self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"type": self.event, "timestamp": stamp, "url": page + self.path, "data": redacted(self.data)}


def meant(words: Iterable[str]) -> list[str]:
    """The events that a person names, also by their groups; UsageError for what is none."""
    found: dict[str, None] = {}
    for word in words:
        if word == "all":
            found.update(dict.fromkeys(EVENTS))
        elif word in GROUPS:
            found.update(dict.fromkeys(GROUPS[word]))
        elif word in EVENTS:
            found[word] = None
        else:
            raise UsageError(
                f"{word[:50]!r} is no event",
                f"there are: all, {', '.join(GROUPS)}; {', '.join(EVENTS)}",
                "name one of them",
            )
    if not found:
        raise UsageError("no event is named", f"there are: all, {', '.join(GROUPS)}", "name one of them")
    return list(found)


def of_output(output: Output, at: datetime) -> Notice | None:
    """What an output tells; None for what is told otherwise, or to no person.

    Whether a closing output ended a turn of words is known once its rows are stored: a stop or an answer to a request
    for permission is closed by one as well.
    """
    event = _OF_OUTPUT.get(output.status)
    if event is None or output.result is not None or output.session_id.startswith(RESERVED_SESSIONS[1:]):
        return None
    if output.task is not None:  # its state tells it
        return None
    path = "/inbox" if output.approval else f"/chat/{quote(output.session_id, safe='')}"
    data = output.model_dump(mode="json", exclude_none=True, exclude={"via", "sig"})
    subject = f"session {output.session_id}"
    return Notice(
        *(event, f"output {output.id} {output.status}", subject, at, data, path),
        user_id=output.user_id,
        session=output.session_id,
    )


def of_task(event: TaskEvent, task: Task, project: str) -> list[Notice]:
    """What a transition of a task tells."""
    found = [_OF_STATE[str(event.to_status)]] if event.to_status in _OF_STATE else []
    if event.event == "budget_spent":
        found = ["budget.reached"]
    if event.event == "passed" and task.branch:
        found.append("review.ready")  # what was checked waits to be merged
    data = {
        "task_id": task.slug,
        "title": task.title,
        "status": str(event.to_status or "").lower(),
        "event": event.event,
        "actor": event.actor,
        "project": project,
        "session_id": task.session_id,
        "user_id": task.user_id,
        "branch": task.branch,
        "question": task.question if event.to_status in ("WAITING_INPUT", "PAUSED") else None,
        "error": task.error or None,
    }
    told = {name: value for name, value in data.items() if value is not None}
    path = f"/tasks/{quote(task.slug, safe='')}"
    return [
        Notice(
            *(name, f"task {event.id} {name}", f"task {task.slug}", event.created_at, told, path),
            user_id=task.user_id or "",
            session=task.session_id or "",
            project_id=task.project_id,
        )
        for name in found
    ]


def of_test(subscription: Subscription, key: str) -> Notice:
    """What a person sends to see whether it arrives."""
    data = {"subscription": subscription.slug, "content": f"This is a test of {subscription.slug}."}
    return Notice(TEST, key, "", now(), data, "/", user_id=subscription.user_id)


def hears(subscription: Subscription, notice: Notice) -> bool:
    """Whether a subscription is told of it: of what its person or its project does since it is there."""
    # The time of an output has milliseconds: what was said in that of the subscription was said since then.
    since = subscription.created_at.replace(microsecond=subscription.created_at.microsecond // 1000 * 1000)
    if notice.event not in subscription.events or notice.at < since:
        return False
    if subscription.everything:
        return True
    if subscription.project_id is not None:
        return notice.project_id == subscription.project_id
    return people.sees(subscription.user_id, notice.user_id or None)


def project_of(rows: Iterable[Project]) -> dict[UUID, str]:
    """Slugs of projects by id."""
    return {row.id: row.slug for row in rows}
