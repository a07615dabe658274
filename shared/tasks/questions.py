"""The open question of a task: what it asked, and the options that it gave. Its truth for surfaces is the Store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.store.base import Store
from shared.store.records import Task, TaskEvent

ASKED = "question"  # the event with which a task begins to wait
_DIGITS = 9  # of a number that may be an option's


@dataclass(frozen=True)
class Open:
    """A question that waits for its answer."""

    asked: str
    options: list[str] = field(default_factory=list)
    context: str = ""
    at: datetime | None = None

    def card(self) -> dict[str, Any]:
        """As JSON tells it."""
        return {"asked": self.asked, "options": self.options, "context": self.context}

    def lines(self) -> list[str]:
        """As a person reads it, with the options by their numbers."""
        numbered = [f"  {number}. {option}" for number, option in enumerate(self.options, 1)]
        return [self.asked, *([self.context] if self.context else []), *numbered]


def detail(question: dict[str, Any]) -> dict[str, Any]:
    """What the task's history keeps of a question."""
    options = [str(option) for option in question.get("options") or []]
    return {
        "asked": question.get("asked") or "",
        "options": options,
        "context": question.get("context") or "",
    }


async def of(store: Store, task: Task) -> Open | None:
    """The question that a task waits with; None for one that does not. A release before kept no options."""
    if task.status != "WAITING_INPUT":
        return None
    where: dict[str, Any] = {"task_id": task.id, "event": ASKED}
    rows = await store.select(TaskEvent, where, order=[("created_at", "desc")], limit=1)
    kept = rows[0].detail if rows else {}
    at = rows[0].created_at if rows else None
    if kept.get("asked") != task.question:
        return Open(task.question, at=at)
    return Open(task.question, list(map(str, kept.get("options") or [])), str(kept.get("context") or ""), at)


def beyond(text: str, count: int) -> str:
    """Which numbers there are, where a text is one that names none of so many options; "" for all else."""
    number = text.strip().rstrip(".)")
    if not (count and number.isdecimal()) or (len(number) <= _DIGITS and 0 < int(number) <= count):
        return ""
    return f"there are 1 to {count}" if count > 1 else "there is 1 only"


def chosen(text: str, options: list[str]) -> str:
    """The option that a number means; other words as they are."""
    number = text.strip().rstrip(".)")
    return (
        options[int(number) - 1]
        if number.isdecimal() and not beyond(text, len(options)) and options
        else text
    )
