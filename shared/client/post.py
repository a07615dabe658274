"""Posting: a message is checked, put into the inbox that it belongs to, and only then counts as sent."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from shared.bus import messages, reading
from shared.bus.base import Bus
from shared.bus.keys import CHATTER, HUMAN_INPUT, Names
from shared.bus.signing import Signer
from shared.client.types import Sent
from shared.errors import BadMessage, Busy, Denied, Missing, UsageError
from shared.turns import routing, scripts
from shared.turns.queue import Mail, Queue

AGENT = "agent:"
STATUS = "agent:status"


def stamped(channel: str, message: dict[str, Any]) -> dict[str, Any]:
    """The message with an id and a time, where it has none; `channel` is the contract's name."""
    made = {"timestamp": messages.now(), "v": 1, **{k: v for k, v in message.items() if v is not None}}
    if channel == HUMAN_INPUT or channel.startswith(AGENT):
        made.setdefault("id", str(uuid4()))
    return made


def is_posted(channel: str, message: dict[str, Any]) -> bool:
    """Whether this goes into an inbox; everything else is a plain PUBLISH."""
    if channel == HUMAN_INPUT:
        return True
    kinds = messages.REQUESTS | messages.ANSWERS
    return channel.startswith(AGENT) and channel != STATUS and message.get("type") in kinds


def check(names: Names, channel: str, message: dict[str, Any]) -> None:
    """BadMessage, or UsageError, for what no inbox would take."""
    if is_posted(channel, message):
        _mail(names, channel, message)
    elif channel.startswith(AGENT) and channel != STATUS:
        _agent(channel, message)


def _data(names: Names, channel: str, message: dict[str, Any]) -> bytes:
    marked = {**message, "via": names.channel(channel)}
    try:
        data = json.dumps(marked, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadMessage("the message holds half a character", "a lone surrogate is no text") from None
    reading.read(data)
    return data


def _agent(channel: str, message: dict[str, Any]) -> messages.AgentMessage:
    parsed = messages.agent(message)
    if channel != AGENT + parsed.to:
        raise UsageError(
            f"the message is for {parsed.to!r}",
            f"the channel is {channel}",
            f"publish it on {AGENT}{parsed.to}",
        )
    return parsed


def _mail(names: Names, channel: str, message: dict[str, Any]) -> tuple[str, Mail]:
    """The queue that it belongs to, and its place there."""
    data = _data(names, channel, message)
    if channel == HUMAN_INPUT:
        return CHATTER, routing.human(names, messages.human(message), data)
    parsed = _agent(channel, message)
    mail = routing.agent(names, parsed, data)
    assert mail is not None, "only what is_posted comes here"
    return parsed.to, mail


async def post(
    bus: Bus, names: Names, channel: str, message: dict[str, Any], lease_ms: int, signer: Signer | None = None
) -> Sent:
    """Post it; BusUnreachable when nobody knows whether it arrived, Busy or Denied when it was refused."""
    if signer is not None:
        message = signed(signer, names, channel, message)
    agent, mail = _mail(names, channel, message)
    queue = Queue(bus, names, agent, lease_ms=lease_ms)
    if mail.place == "answer":
        return await _answer(bus, queue, mail)
    receipt = await queue.post(mail)
    if receipt.outcome == "foreign":
        raise Denied(
            f"the session {mail.session} belongs to somebody else",
            "",
            "leave the session out, or name another",
        )
    if receipt.outcome == "nowhere":
        raise Missing(scripts.NO_THREAD.partition(":")[0], "", scripts.NO_THREAD.partition(": ")[2])
    if receipt.theirs:
        raise Busy(
            f"{agent} takes nothing more from you now",
            f"{receipt.waiting} messages of yours wait for it",
            "await the answers to those",
        )
    if receipt.outcome == "busy":
        raise Busy(
            f"{agent} takes nothing more now", f"{receipt.waiting} messages wait for it", "try again later"
        )
    return Sent(mail.id, receipt.outcome, waiting=receipt.waiting, session=receipt.session)


async def _answer(bus: Bus, queue: Queue, mail: Mail) -> Sent:
    """An answer goes to whoever waits for it; where nobody of ours does, a foreign program may."""
    told = await queue.respond(mail.session, mail.channel, mail.data)
    if told == "delivered":
        return Sent(mail.id, "accepted")
    if told == "late":
        return Sent(mail.id, "known")
    return Sent(mail.id, "heard", heard=await bus.publish(mail.channel, mail.data))


def signed(signer: Signer, names: Names, channel: str, message: dict[str, Any]) -> dict[str, Any]:
    """The message with a signature of now."""
    whole = {name: value for name, value in message.items() if name not in ("sig", "via", "unsigned")}
    return {**whole, "sig": signer.sign(names.channel(channel), whole)}


async def publish(
    bus: Bus, names: Names, channel: str, message: dict[str, Any], signer: Signer | None = None
) -> Sent:
    """Plain PUBLISH."""
    if signer is not None:
        message = signed(signer, names, channel, message)
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    heard = await bus.publish(names.channel(channel), data)
    return Sent(str(message.get("id", "")), "heard", heard=heard)
