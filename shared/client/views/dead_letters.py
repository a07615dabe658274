"""Dead letters: what could not be answered, why, and another try."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from shared import log
from shared.bus import messages, reading
from shared.client.client import Client
from shared.client.text.matching import pick
from shared.client.text.times import clocked
from shared.client.types import Sent
from shared.client.views.pending import preview
from shared.errors import BadMessage, UsageError
from shared.redaction import redacted

# What a worker writes where it joined a channel on which nobody had listened for a while: `queue.rejoin`.
_GAP = re.compile(r"gap: .* between (\d+) and (\d+) ")


@dataclass(frozen=True)
class Dead:
    """One dead letter; `key` names it, since what was unreadable has no id."""

    key: str
    agent: str
    id: str
    session: str
    channel: str
    reason: str
    data: bytes

    def card(self) -> dict[str, Any]:
        """How it is listed."""
        return {
            "key": self.key,
            "at_ms": _moment(self.key)[0],
            "agent": self.agent,
            "id": self.id,
            "session": self.session,
            "channel": self.channel,
            "reason": self._why(),
            "kind": "gap" if self.gap else "message",
            "content": preview(self.data),
        }

    @property
    def gap(self) -> re.Match[str] | None:
        """For a span in which nobody listened: no message, so nothing that could be posted again."""
        return _GAP.match(self.reason)

    def _why(self) -> str:
        if not (gap := self.gap):
            return log.redact(self.reason)
        first, last = (clocked(int(ms) / 1000) for ms in gap.groups())
        return (
            f"nobody listened from {first} to {last}: what was published to {self.agent} in that time by a plain "
            "PUBLISH is lost, if there was any; whoever sends by `promptdock` or a stream lost nothing"
        )


async def letters(client: Client, limit: int = 1000) -> list[Dead]:
    """All dead letters, the newest first."""
    await client.reach()
    found = []
    for agent in await client.presence.agents():
        stream = client.names.keys(agent).dead_letters
        for entry, flat in await client.bus.command("XREVRANGE", stream, "+", "-", "COUNT", limit):
            pairs = zip(flat[::2], flat[1::2], strict=True)
            fields = {key.decode("utf-8", "replace"): value for key, value in pairs}
            texts = {
                name: fields.get(name, b"").decode("utf-8", "replace")
                for name in ("id", "session", "channel", "reason")
            }
            data = fields.get("data", b"\n".join(flat))
            found.append(Dead(f"{agent}/{entry.decode()}", agent, **texts, data=data))
    return sorted(found, key=lambda letter: _moment(letter.key), reverse=True)


def _moment(key: str) -> tuple[int, int]:
    ms, _, number = key.rpartition("/")[2].partition("-")
    return int(ms), int(number)


async def find(client: Client, name: str) -> Dead:
    """The dead letter of that key, or the newest of that message id; a part is enough."""
    found = await letters(client, 10_000)
    names = {text for letter in found for text in (letter.key, letter.id) if text}
    meant = pick(name, names, "dead letter", "promptdock dead list shows them")
    return next(letter for letter in found if meant in (letter.key, letter.id))


async def drop(client: Client, name: str | None) -> int:
    """Throw away the dead letter of that key or id, or all for None; how many."""
    dropped = [await find(client, name)] if name is not None else await letters(client, 100_000)
    for letter in dropped:
        stream = client.names.keys(letter.agent).dead_letters
        await client.bus.command("XDEL", stream, letter.key.rpartition("/")[2])
    return len(dropped)


async def replay(client: Client, name: str) -> Sent:
    """Post it again under a new id; it leaves the dead letters once it is accepted."""
    letter = await find(client, name)
    if letter.gap:
        fix = f"ask who sent something then to send it again; away with this note: promptdock dead drop {letter.key}"
        raise UsageError(f"{letter.key} is no message", "it tells of a time in which nobody listened", fix)
    try:
        message = reading.read(letter.data)
    except BadMessage as error:
        raise UsageError(
            f"{letter.key} cannot be posted again", str(error), "send a corrected one: promptdock publish"
        ) from None
    if message.get("type") in messages.ANSWERS:
        raise UsageError(f"{letter.key} is an answer", "nobody waits for it any more", "ask again")
    message |= {"id": str(uuid4()), "replay_of": letter.id, "timestamp": messages.now()}
    message.pop("deadline", None)
    try:
        sent = await client.publish(client.names.bare(letter.channel), message)
    except BadMessage as error:
        raise UsageError(
            f"{letter.key} cannot be posted again", str(error), "send a corrected one: promptdock publish"
        ) from None
    if sent.outcome == "accepted":
        stream = client.names.keys(letter.agent).dead_letters
        await client.bus.command("XDEL", stream, letter.key.rpartition("/")[2])
    return sent


def whole(letter: Dead) -> dict[str, Any]:
    """It with everything that was in it but secrets."""
    text = letter.data.decode("utf-8", "replace")
    try:
        return letter.card() | {"message": redacted(json.loads(text))}
    except (ValueError, RecursionError):
        return letter.card() | {"message": log.redact(text)}
