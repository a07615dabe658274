"""Where a message belongs: which session of which queue, and how it is placed there.

The same rules hold for what is posted and for what comes by plain PUBLISH.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from pydantic import ConfigDict, TypeAdapter

from shared import failpoints, people
from shared.bus import decisions, messages, reading
from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT, Names
from shared.errors import BadMessage, Refused
from shared.turns import scripts, threads
from shared.turns.queue import DEADLINE_MS, Mail, Place

KEPT = 64 * 1024  # of a message that is too large, in the dead letters
_NAME: TypeAdapter[str] = TypeAdapter(messages.Name, config=ConfigDict(defer_build=True))
_ID: TypeAdapter[str] = TypeAdapter(messages.Id, config=ConfigDict(defer_build=True))


def human(names: Names, message: messages.AnyHuman, data: bytes, trusted: bool = True) -> Mail:
    """A person's message on `human-input`. Words that name a running turn may join it; a stop goes first. What names a
    turn that does not run stops and amends no other.

    An answer to a request for permission goes to a session of its own: nobody's running turn delays it. Of what is not
    `trusted` nobody knows who sent it: it has a share of the queue together with all others of its kind.
    """
    _reserved(message)
    place: Place = "mail"
    session, reply = message.session, ""
    if isinstance(message, messages.Stop):
        reply = message.turn_id or message.request_id or ""
        place = "aim" if reply else "kill" if message.kill else "front"
    elif isinstance(message, messages.Amend):
        reply = message.turn_id or ""
        place = "add" if reply else "join"
    elif isinstance(message, messages.ApprovalMessage):
        session = f"approval:{message.approval_id}"
    elif isinstance(message, messages.Posted):
        place = "posted"
    elif isinstance(message, messages.Said):
        reply = message.in_reply_to or message.reply_to or ""
        place = "word" if decisions.decision(message.content) else "reply" if reply else "mail"
        if place == "word" and unsigned(message):
            place = "claim"
    ends = messages.deadline_ms(message.deadline) or -DEADLINE_MS
    channel = names.channel(HUMAN_INPUT)
    said_at = getattr(message, "channel", None) or ""
    busy = error_output(names, message.user_id, message.id or "", scripts.BUSY, message.session, said_at)
    owner = owner_of(message, trusted)
    return Mail(
        *(message.id or "", session, channel, data, place, ends, reply),
        refusal=busy,
        person=f"s:{message.user_id}" if trusted else "u:",
        owner=""
        if isinstance(message, messages.ApprovalMessage) or failpoints.without("session-owner")
        else owner,
        way=threads.way(message, trusted),
    )


def owner_of(message: messages.Human, trusted: bool) -> str:
    """Who comes with it into a session, as the scripts note that."""
    who = threads.trust(trusted) + people.called(message.user_id)
    return f"*{who}" if message.shared and trusted else who


def unsigned(message: messages.Envelope) -> bool:
    """Whether it came without a signature, and may not answer for anybody: the intake notes that."""
    return bool((message.model_extra or {}).get("unsigned"))


def _reserved(message: messages.AnyHuman) -> None:
    """Refused for a session that is another person's by its name."""
    named = message.session_id or ""
    if not named.startswith(messages.RESERVED_SESSIONS) or failpoints.without("session-owner"):
        return
    if named not in (messages.default_session(message.user_id, kind) for kind in messages.PERSONAL):
        raise Refused(
            f"the session {named} is not {message.user_id}'s", "", "leave session_id out, or name another"
        )


def agent(names: Names, message: messages.AgentMessage, data: bytes) -> Mail | None:
    """A message on `agent:<name>`: a request is a session of its own; an answer belongs to whoever asked.

    None for what is only to be looked at (progress, cancel): it is not kept.
    """
    channel = names.agent(message.to)
    if message.type in messages.ANSWERS:
        return Mail(message.id, message.request_id or "", channel, data, "answer", 0)
    if message.type in messages.REQUESTS:
        ends = messages.deadline_ms(message.deadline) or -DEADLINE_MS
        error = BadMessage(scripts.BUSY)
        busy = _error_answer(names, channel, message.sender, message.id, error)
        return Mail(
            *(message.id, message.id, channel, data, "mail", ends, names.agent(message.sender)),
            refusal=busy,
            person=f"agent:{message.sender}",
        )
    return None


def dead(names: Names, channel: str, data: bytes, error: BadMessage) -> Mail:
    """What cannot be used, with an answer where somebody can be named who reads it.

    `reply` is then the channel of the answer, where it is not Chatter's output.
    """
    refusal, reply = "", ""
    kept = data if len(data) <= KEPT else data[:KEPT]
    if channel == names.channel(HUMAN_INPUT):
        sender = _sender(data)
        if sender:
            # Who did not sign is told in a session of their own: a stranger fills nobody's chat.
            session = messages.default_session(sender[0], messages.PLAIN)
            session = session if isinstance(error, Refused) else sender[2]
            refusal = error_output(names, sender[0], sender[1], str(error), session, sender[3])
    elif request := _request(data):
        asker, request_id = request
        reply, refusal = names.agent(asker), _error_answer(names, channel, asker, request_id, error)
    return Mail("", "", channel, kept, "dead", 0, reply, refusal, malformed(error))


def malformed(error: BadMessage) -> str:
    """The reason of the dead letter: what is wrong, and where."""
    if isinstance(error, Refused):
        return f"refused: {error.what}"[:300]
    return f"malformed: {error.what}{f' ({error.why})' if error.why else ''}"[:300]


def error_output(
    names: Names, user: str, message_id: str, text: str, session: str = "", place: str = ""
) -> str:
    """A closing output with status `error` for a message that is no turn; `place` is the channel it came from."""
    output = messages.Output(
        user_id=user,
        content=text,
        status="error",
        id=f"{message_id or uuid4()}.error",  # two that cannot be read are two answers
        session_id=session or messages.default_session(user),
        in_reply_to=message_id or None,
        answers=[message_id] if message_id else [],
        channel=place or None,
    )
    return output.text(names.channel(CHATTER_OUTPUT))


def _error_answer(names: Names, channel: str, asker: str, request_id: str, error: BadMessage) -> str:
    """The `error` that a request gets which no turn can be made of."""
    sender = names.bare(channel).removeprefix("agent:")
    payload = {"request_id": request_id, **error.as_dict()}
    return messages.AgentMessage.outgoing(str(uuid4()), sender, asker, "error", payload).to_bytes().decode()


def _request(data: bytes) -> tuple[str, str] | None:
    """Who sent a malformed request, and its id, where they can be read.

    Only requests are answered: two agents that do not understand each other would answer without end.
    """
    value = _readable(data)
    if value is None or str(value.get("type")) not in messages.REQUESTS:
        return None
    try:
        asker = _NAME.validate_python(value.get("from"), strict=True)
        request_id = _ID.validate_python(value.get("id"), strict=True)
        request_id.encode()
    except ValueError:
        return None
    return None if asker in messages.RESERVED else (asker, request_id)


def _readable(data: bytes) -> dict[str, Any] | None:
    if len(data) > 8 * reading.MAX_BYTES:
        return None
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _sender(data: bytes) -> tuple[str, str, str, str] | None:
    """Who sent something malformed, with its id, session and channel, where they can be read."""
    value = _readable(data)
    if value is None:
        return None
    user, id, session, place = (_word(value.get(name)) for name in ("user_id", "id", "session_id", "channel"))
    return (user, id, session, place) if user else None


def _word(value: object) -> str:
    """A name that can be shown; "" for what is none."""
    return value if isinstance(value, str) and len(value) <= 200 and value.isprintable() else ""
