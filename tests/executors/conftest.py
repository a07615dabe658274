"""A worktree, a journal, and a task as an executor is handed it."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shared.executors.base import TaskWork
from shared.guard.sandbox.sandbox import Sandbox
from shared.tasks.worktree.lock import WorktreeLock
from shared.turns.records import JournalRecord, Records
from tests.tasks.conftest import plain

HAS_CLAUDE_CODE = importlib.util.find_spec("claude_agent_sdk") is not None
collect_ignore = (
    [] if HAS_CLAUDE_CODE else ["test_claude_code.py", "test_claude_journey.py", "test_claude_worker.py"]
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why tests did not run is said, not left to be noticed."""
    if not HAS_CLAUDE_CODE:
        told = "Claude Code is not installed: make test-claude-code installs it and runs its tests"
        terminalreporter.write_line(told)


class Journal:
    """A turn's memory without a cluster."""

    def __init__(self) -> None:
        self.records = Records()

    async def step(self, *records: JournalRecord) -> None:
        self.records.extend(records)


class Person:
    """Gives permission, answers questions, and remembers what came."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.questions: list[dict[str, Any]] = []
        self.denies: dict[str, str] = {}
        self.answer = ""
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.words: list[str] = []

    async def permit(self, tool: str, arguments: dict[str, Any], _key: str) -> str:
        self.asked.append((tool, arguments))
        return self.denies.get(tool, "")

    async def ask(self, question: dict[str, Any]) -> str:
        self.questions.append(question)
        return self.answer

    async def joined(self) -> list[str]:
        words, self.words = self.words, []
        return words

    def live(self, kind: str, payload: dict[str, Any]) -> None:
        self.events.append((kind, payload))


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def work(tmp_path: Path, person: Person) -> AsyncIterator[TaskWork]:
    """A task in a repository of its own."""
    folder = (tmp_path / "tree").resolve()
    folder.mkdir()
    plain(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    lock = WorktreeLock(tmp_path, "t", 1)
    await lock.take()
    found = Sandbox.probe()
    yield TaskWork(
        turn_id="turn-1",
        path=folder,
        branch="promptdock/t",
        system=("You are Backend.",),
        command="[task t] Do it.",
        model="claude-sonnet-5-5",
        journal=Journal(),
        lock=lock,
        sandbox=found if found.confines else Sandbox.probe("none"),
        permit=person.permit,
        ask=person.ask,
        live=person.live,
        joined=person.joined,
        scratch=tmp_path / "scratch",
    )
    await lock.release()
