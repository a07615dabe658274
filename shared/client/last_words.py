"""What was in a conversation before somebody opens it: its last words, and what its person was not shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from shared import log
from shared.bus.keys import CHATTER
from shared.bus.messages import Output
from shared.client.client import Client
from shared.client.types import Heard
from shared.conversation import reading
from shared.store.records import Message

_WAITING = 1000  # messages that have not ended, of which one may be this person's
_LOOKED = 20  # messages among which a person's last words and their answer are found


@dataclass(frozen=True)
class Last:
    """A person's last words, when they were said, and what was answered in the turn that they opened."""

    turn: str
    said: str
    answered: str
    at: datetime
    by: str = ""  # who answered


async def last(client: Client, session: str, user: str) -> Last | None:
    """The end of a conversation, as it is stored; None where it was not this person who spoke last."""
    items = (await reading.page(await client.store(), session, None, _LOOKED)).items
    asked = next((item for item in reversed(items) if item.by_person), None)
    if asked is None or asked.row.user_id != user:
        return None
    turn = asked.id if isinstance(asked.row, Message) else asked.turn
    answers = [item for item in items if item.turn == turn and not item.by_person and not item.mark]
    answer = next((item for item in answers if item.text), None)
    return Last(turn, asked.text, answer.text if answer else "", asked.at, answer.who if answer else "")


async def unanswered(client: Client, session: str, user: str) -> Last | None:
    """What this person said last of what has not ended: it is stored with its answer."""
    inbox = client.names.keys(CHATTER).inbox
    for entry, flat in await client.bus.command("XREVRANGE", inbox, "+", "-", "COUNT", _WAITING):
        fields = dict(zip(flat[::2], flat[1::2], strict=True))
        try:
            words = json.loads(fields.get(b"data", b""))
        except (ValueError, RecursionError):
            continue
        if fields.get(b"session") != session.encode() or not isinstance(words, dict):
            continue
        if words.get("type") in (None, "message") and words.get("user_id") == user and words.get("content"):
            at = datetime.fromtimestamp(int(entry.split(b"-")[0]) / 1000, UTC)
            said = log.redact(str(words["content"]))
            return Last(fields.get(b"id", b"").decode("utf-8", "replace"), said, "", at)
    return None


async def missed(client: Client, session: str, user: str) -> list[Heard]:
    """What was said to this person while nobody showed it to them, the oldest first; questions of tasks are left out.

    These are put again by Chatter, who knows whether they are open still.
    """
    key = client.names.keys(CHATTER).unseen(session)
    found = []
    for id, fields in await client.bus.command("XRANGE", key, "-", "+"):
        try:
            output = Output.model_validate_json(fields[1])
        except ValidationError:
            continue  # Chatter logs that
        if output.user_id == user and (output.status == "awaiting_input" or not output.question):
            found.append(Heard(output, id.decode()))
    return found
