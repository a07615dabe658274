"""What a turn was given, read and sorted by kind."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from shared import people
from shared.bus import messages
from shared.errors import BadMessage
from shared.guard.permissions.display import tagless
from shared.redaction import conceal
from shared.turns.queue import QueueEntry
from shared.turns.records import ModelRecord, Records, ResultRecord

REST = "rest"  # the command by which an agent has a conversation rest in which nobody spoke for long


@dataclass
class TurnInput:
    """The messages of a turn. The first of them decides what kind of turn it is."""

    said: list[messages.Said] = field(default_factory=list)
    amends: list[messages.Amend] = field(default_factory=list)
    stops: list[messages.Stop] = field(default_factory=list)
    commands: list[messages.CommandMessage] = field(default_factory=list)
    approvals: list[messages.ApprovalMessage] = field(default_factory=list)
    answers: list[messages.AgentMessage] = field(default_factory=list)
    requests: list[messages.AgentMessage] = field(default_factory=list)
    rests: list[messages.AgentMessage] = field(default_factory=list)  # nobody spoke for long: see resting.py


def sort(entries: list[QueueEntry], human_channel: str) -> TurnInput:
    """Sort what came; BadMessage for one that cannot be read."""
    given = TurnInput()
    for entry in entries:
        try:
            value = entry.message() if entry.channel == human_channel else json.loads(entry.data)
        except ValueError as error:
            raise BadMessage("a message cannot be read", str(error)[:200]) from None
        if entry.channel != human_channel:
            agent = messages.agent(value)
            (given.answers if agent.type in messages.ANSWERS else _asked(given, agent)).append(agent)
            continue
        message = messages.human(value)
        match message:
            case messages.Said():
                given.said.append(message)
            case messages.Amend():
                given.amends.append(message)
            case messages.Stop():
                given.stops.append(message)
            case messages.CommandMessage():
                given.commands.append(message)
            case messages.ApprovalMessage():
                given.approvals.append(message)
    return given


def _asked(given: TurnInput, agent: messages.AgentMessage) -> list[messages.AgentMessage]:
    rests = agent.type == "command" and agent.sender == agent.to and agent.payload.get("command") == REST
    return given.rests if rests else given.requests


def words(given: TurnInput) -> list[str]:
    """What is said in it, as the model reads it: each with its sender."""
    told = [*map(said, given.said), *map(said, given.amends)]
    for request in given.requests:
        payload = json.dumps(request.payload, ensure_ascii=False)
        told.append(f"[question from agent {request.sender}]: {payload}")
    return told


def said(message: messages.Said | messages.Amend) -> str:
    """One person's words."""
    return tagless(
        conceal(f"[from {message.user_name or people.called(message.user_id)}]: {message.content}")
    )


def pictures(message: messages.Said | messages.Amend) -> list[dict[str, Any]]:
    """The pictures of one person's words, as a model is sent them."""
    return [image.block() for image in message.images] if isinstance(message, messages.Said) else []


def awaited(turn_id: str, records: Records) -> set[str]:
    """The requests of a turn that goes on after a crash whose answers it used, or still waits for."""
    keys: dict[str, str] = {}
    rounds = 0
    for record in records:
        if isinstance(record, ModelRecord):
            rounds += 1
            keys |= {block["id"]: f"{turn_id}.{rounds}.{n}" for n, block in enumerate(record.calls, 1)}
        elif isinstance(record, ResultRecord) and record.error:
            keys.pop(record.id, None)  # it was given up: an answer to it is late
    return set(keys.values())
