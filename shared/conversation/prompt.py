"""The system prompt: stable parts first, changing parts last, so that the provider's cache holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime


def compose(
    prompt: str, *, roster: Mapping[str, str], repositories: str, now: datetime | None = None
) -> tuple[str, ...]:
    """The parts in order: who the agent is; who and what is there; the date to the minute."""
    there = "\n".join(
        f"- {name}: {about}" if about else f"- {name}" for name, about in sorted(roster.items())
    )
    around = (
        f"Agents on the roster:\n{there or '- none'}\n\nRepositories:\n{repositories or '- none registered'}"
    )
    moment = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    return (prompt.strip(), around, f"Current date and time: {moment}")
