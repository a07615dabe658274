"""What the model is told beside what is said: the system prompt, which is stable, and the situation, which is not.

A provider's cache reads tools, then system, then messages, and one byte that changed voids all behind it. So what
changes stands at the end of the newest message, and stays there when the conversation goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from shared.conversation.sessions import DEFAULT
from shared.models.base import Block

_NOW = "Current date and time: "
_CHOSEN = """
Use this as the default project_id for all tools unless the user
explicitly specifies a different project. When creating tasks,
listing notes, or any project-scoped operation, use this project."""


def compose(prompt: str, *, roster: Mapping[str, str], repositories: str) -> tuple[str, ...]:
    """The parts in order: who the agent is; who and what is there."""
    there = "\n".join(
        f"- {name}: {about}" if about else f"- {name}" for name, about in sorted(roster.items())
    )
    around = (
        f"Agents on the roster:\n{there or '- none'}\n\nRepositories:\n{repositories or '- none registered'}"
    )
    return (prompt.strip(), around)


def active_project(project: str) -> str:
    """Which project the turn works on; what that means is said where somebody chose it."""
    return f"ACTIVE PROJECT: `{project}`.{'' if project == DEFAULT else _CHOSEN}"


def situation(told: Sequence[str] = (), now: datetime | None = None) -> str:
    """What holds as a turn begins: the date to the minute, then what is `told`; a note in brackets."""
    moment = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    lines = "\n".join((f"{_NOW}{moment}", *told)).replace("]", ")")
    return f"[{lines}]"


def spoken(content: Sequence[Block]) -> str:
    """The words of a message of a conversation, without the situation in which they were said."""
    texts = (str(block.get("text", "")) for block in content if block.get("type") == "text")
    return "\n".join(text for text in texts if not is_situation(text))


def is_situation(text: str) -> bool:
    """Whether a block of a conversation is a note of `situation`: what people say begins with their name."""
    return text.startswith(f"[{_NOW}")
