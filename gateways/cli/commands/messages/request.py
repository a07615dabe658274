"""What `ask` sends: the words, where and how they are to be answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.bus.messages import default_session, in_channel
from shared.errors import UsageError


@dataclass(frozen=True)
class Way:
    """How it is to be answered: where it is said, by which profile, in which mode."""

    channel: str | None = None
    profile: str | None = None
    full: bool = False
    notes: bool = False
    new_thread: bool = False
    thread: int | None = None
    reply_to: str | None = None

    @property
    def threaded(self) -> bool:
        """Whether the cluster finds its conversation."""
        return bool(self.new_thread or self.thread or self.reply_to)

    def fields(self) -> dict[str, Any]:
        """As the message says it: nothing where it goes the usual way."""
        mode = {"mode": "full"} if self.full else {}
        return (
            mode
            | ({"notes": True} if self.notes else {})
            | ({"replies": True} if self.new_thread else {})
            | {"channel": self.channel, "profile_id": self.profile}
            | {"thread": self.thread, "reply_to": self.reply_to}
        )


def channel_of(agent: str | None, channel: str | None) -> str | None:
    """The channel that is meant: that of an agent in our own surfaces, or one by its name."""
    if agent and channel:
        raise UsageError(
            "--agent and --channel say two things", "an agent is asked on its own channel", "give one"
        )
    return f"promptdock:{agent}" if agent else channel


@dataclass(frozen=True)
class Request:
    """What is asked, by whom, and how long the answer is awaited."""

    text: str
    user: str
    session: str | None
    timeout: float | None  # seconds; None: as long as it makes sense here
    force: bool
    as_json: bool
    way: Way = Way()

    @property
    def conversation(self) -> str:
        """Where it is said."""
        if self.session or not self.way.channel:
            return self.session or default_session(self.user)
        return in_channel(self.user, self.way.channel)


@dataclass
class Conversation:
    """Where a message is said: the cluster may have found that for it."""

    session: str
