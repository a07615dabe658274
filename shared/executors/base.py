"""What carries out a coding task.

Above stands the worker, which makes the worktree and hands over everything that an executor may touch: the
journal of the turn, permission for each call, the person to be asked. Below stand the implementations: the
built-in loop (shared/worker/coding/builtin.py, which needs what only the worker has) and Claude Code
(`claude_code`). What was done is never taken from an executor's words: the worker records it from git and
from commands that it ran itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from shared.guard.processes.process import Lock
from shared.guard.sandbox.sandbox import Sandbox
from shared.models.base import Usage
from shared.turns.records import JournalRecord, ModelRecord, NoteRecord, Records

PublishProgress = Callable[[str, dict[str, Any]], None]  # kind of event, payload; must not block
TaskMessages = Callable[[], Awaitable[list[str]]]  # words that came for this task meanwhile
# Permission for one call of a tool of ours: its name, its arguments, a key that is the same on replay. The reason
# of a refusal, "" where it may run.
AllowCall = Callable[[str, dict[str, Any], str], Awaitable[str]]
# A question to the person, {asked, options, context}: the answer, "" where nobody answered in time.
Ask = Callable[[dict[str, Any]], Awaitable[str]]


class ExecutorJournal(Protocol):
    """The turn's memory; `step` raises Fenced once the turn belongs to another worker."""

    records: Records

    async def step(self, *records: JournalRecord) -> None:
        """Append; it is stored when this comes back."""


@dataclass(frozen=True)
class TaskWork:
    """One task, as an executor is handed it. `path` is its worktree; children are started under `lock`."""

    turn_id: str
    path: Path
    branch: str
    system: tuple[str, ...]
    command: str
    model: str
    journal: ExecutorJournal
    lock: Lock
    sandbox: Sandbox
    permit: AllowCall
    ask: Ask
    live: PublishProgress
    joined: TaskMessages
    scratch: Path  # a folder of the task's own beside the worktree, kept until the task has ended
    cost: float | None = None  # dollars that may be spent
    rounds: int | None = None
    tokens: int | None = None  # that may be used; an executor that cannot count them refuses the task
    environment: dict[str, str] = field(default_factory=dict)  # what a provider needs; secret


@dataclass(frozen=True)
class TaskOutcome:
    """How a run ended: with words, with a question to the person, or refused by the model."""

    text: str
    kind: Literal["answer", "question", "refusal"] = "answer"
    question: dict[str, Any] | None = None  # {asked, options, context}
    usage: Usage = field(default_factory=Usage)  # of all that the task has used until now
    model: str = ""
    demo: bool = False
    spent: str = ""  # the budget that ended it
    limit: str = ""  # what else ended it before it had come to an end by itself


class Executor(Protocol):
    """Carries the task on from wherever its journal stands, to an answer or a question.

    Notes at the end of the journal (`NoteRecord`) are words for it: an answer to its question, or
    what was wrong with its work. It may be cancelled at any time, and leaves no process behind.
    """

    name: str

    async def run(self, work: TaskWork) -> TaskOutcome:
        """Raises ModelError where the provider fails, ToolError where the executor cannot work here."""


def notes(records: Records) -> list[str]:
    """The words at the end of a journal that no answer has followed yet."""
    last = max((n for n, record in enumerate(records) if isinstance(record, ModelRecord)), default=-1)
    return [record.text for record in records[last + 1 :] if isinstance(record, NoteRecord)]
