"""What a client hands to a gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from shared.bus.messages import Output

Card = dict[str, Any]  # one thing, as `--json` prints it: JSON with the names of the contract
Judged = Literal["taken", "unsigned", "dropped"]  # what was published beside Chatter's stream


@dataclass(frozen=True)
class Sent:
    """What became of a message.

    `accepted`: stored, it will end; `known`: it had been accepted before; `kept`: Redis is away, it lies in
    the outbox and goes out when Redis is back; `heard`: a plain PUBLISH, which nobody acknowledges.
    """

    id: str
    outcome: Literal["accepted", "known", "kept", "heard"]
    waiting: int = 0  # how many accepted messages had not ended before it
    heard: int = 0  # how many heard a plain PUBLISH
    session: str = ""  # the conversation that was found for it, where it names none


@dataclass(frozen=True)
class Heard:
    """One output, and the cursor from which a reader who comes back goes on."""

    output: Output
    cursor: str


@dataclass(frozen=True)
class Event:
    """One live event of a session, and its cursor."""

    kind: str
    payload: dict[str, Any]
    cursor: str
