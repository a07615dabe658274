"""What the model is told beside what is said: the system prompt, which is stable, and the situation, which is not.

A provider's cache reads tools, then system, then messages, and one byte that changed voids all behind it. So what
changes stands at the end of the newest message, and stays there when the conversation goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from shared.conversation.sessions import DEFAULT
from shared.models.base import Block, ModelMessage

_NOW = "Current date and time: "
_ROSTER = "Agents on the roster:"
_CHOSEN = """
Use this as the default project_id for all tools unless the user
explicitly specifies a different project. When creating tasks,
listing notes, or any project-scoped operation, use this project."""


def compose(prompt: str, *, roster: Mapping[str, str], repositories: str) -> tuple[str, ...]:
    """The parts in order: who the agent is; who and what is there. For a turn that no other one goes on from."""
    return (prompt.strip(), around(roster, repositories))


def around(roster: Mapping[str, str], repositories: str) -> str:
    """Who and what is there."""
    there = "\n".join(
        f"- {name}: {about}" if about else f"- {name}" for name, about in sorted(roster.items())
    )
    return f"{_ROSTER}\n{there or '- none'}\n\nRepositories:\n{repositories or '- none registered'}"


def news(around: str, messages: Sequence[ModelMessage]) -> list[str]:
    """`around` as lines of a situation; none where the conversation was told just that before."""
    for block in _blocks(messages):
        text = str(block.get("text", ""))
        if block.get("type") == "text" and is_situation(text) and _ROSTER in text:
            if _note(around) in text:
                return []
            break
    return [f"{around}\n"]


def active_project(project: str) -> str:
    """Which project the turn works on; what that means is said where somebody chose it."""
    return f"ACTIVE PROJECT: `{project}`.{'' if project == DEFAULT else _CHOSEN}"


def situation(told: Sequence[str] = (), now: datetime | None = None) -> str:
    """What holds as a turn begins: the date to the minute, then what is `told`; a note in brackets."""
    moment = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    return f"[{_note(chr(10).join((f'{_NOW}{moment}', *told)))}]"


def spoken(content: Sequence[Block]) -> str:
    """The words of a message of a conversation, without the situation in which they were said."""
    texts = (str(block.get("text", "")) for block in content if block.get("type") == "text")
    return "\n".join(text for text in texts if not is_situation(text))


def _note(text: str) -> str:
    """As it stands in a note, which no bracket in it may end."""
    return text.replace("]", ")")


def _blocks(messages: Sequence[ModelMessage]) -> Iterator[Block]:
    """What was said to the model, the newest first."""
    for message in reversed(messages):
        if message["role"] == "user" and not isinstance(message["content"], str):
            yield from reversed(message["content"])


def is_situation(text: str) -> bool:
    """Whether a block of a conversation is a note of `situation`: what people say begins with their name."""
    return text.startswith(f"[{_NOW}")
