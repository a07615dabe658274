"""Threads: how a message finds its session in a channel of a surface, and which threads there are now.

All of it is decided by the scripts that accept messages (`scripts/parts/threads.lua`), in one step with the acceptance,
so that two messages at the same moment never get one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import uuid4

from shared import people
from shared.bus import messages
from shared.bus.base import Bus
from shared.bus.keys import CHATTER, WIRE, Names
from shared.errors import Missing, ToolError
from shared.plain import plain
from shared.redaction import redact
from shared.turns import scripts

ThreadState = Literal["running", "waiting for permission", "completed", "killed"]
PREFIX = "thread:"  # of the sessions that are threads
# How long a number is a thread's after its last word: HELD of scripts/parts/holds.lua.
HELD_MS = 24 * 3_600_000
_NAMED = 12  # threads that an error names
_WORDS, _LOOKED = 60, 2000  # characters of the first words, and those that are looked at for secrets


def trust(trusted: bool) -> str:
    """Before a person's name: whether their gateway signs."""
    return "s:" if trusted else "u:"


def owner(person: str) -> str:
    """A person as sessions name whose they are."""
    return trust(people.signs(person)) + people.called(person)


def way(message: messages.AnyHuman, trusted: bool) -> str:
    """How the scripts find the session of a message; "" for one that has nothing to do with a channel or a reply."""
    if isinstance(message, messages.Posted):
        ids = " ".join(message.surface_ids)
        return _lines("", trusted, message.channel, reply=message.output, surface=ids)
    if not isinstance(message, messages.Placed):
        return ""
    said = message if isinstance(message, messages.Said) else None
    surface = said.surface_id or "" if said else ""
    named = (message.channel, message.reply_to, message.threaded, surface)
    if not any(named) and not message.session.startswith(PREFIX):
        return ""
    how = ""
    if message.threaded:
        how = "number" if message.thread else "reply" if message.reply_to else "new"
    number, reply = str(message.thread or ""), message.reply_to or ""
    words = first_words(said.content) if said else ""
    return _lines(how, trusted, message.channel or "", number, reply, surface, said is not None, words)


def first_words(text: str) -> str:
    """What a thread is called by: how its first words begin, on one line."""
    line = " ".join(redact(text[:_LOOKED]).split())
    return plain(line if len(line) <= _WORDS else f"{line[: _WORDS - 1].rstrip()}…")


def _lines(
    how: str,
    trusted: bool,
    channel: str,
    number: str = "",
    reply: str = "",
    surface: str = "",
    said: bool = False,
    words: str = "",
) -> str:
    return "\n".join(
        (how, trust(trusted), channel, number, reply, surface, str(int(said)), words, uuid4().hex[:16])
    )


@dataclass(frozen=True)
class Thread:
    """A thread that holds a number now. `owner` is the person, with `s:` or `u:` before the name."""

    channel: str
    number: int
    session: str
    state: ThreadState
    owner: str
    words: str
    at: datetime  # of its last word

    @property
    def user(self) -> str:
        """Who began it."""
        return self.owner[2:] if self.owner.startswith(trust(True)) else people.CLAIM + self.owner[2:]

    @property
    def active(self) -> bool:
        """Whether something is done in it."""
        return self.state in ("running", "waiting for permission")


async def last_word(bus: Bus, names: Names, channel: str) -> datetime | None:
    """When something was last said in a thread of a channel, also in one that runs; None where nobody knows."""
    key = names.keys(CHATTER).channels
    at = await bus.command("ZSCORE", key, channel, key=key)
    return datetime.fromtimestamp(float(at) / 1000, UTC) if at else None


def numbered(threads: Sequence[Thread], number: int, here: str = "") -> Thread:
    """The thread of that number, `here` rather than in another channel; ToolError where it is none, or several."""
    found = [thread for thread in threads if thread.number == number]
    found = [thread for thread in found if thread.channel == here] or found
    if not found:
        there = ", ".join(f"#{thread.number} in {thread.channel}" for thread in threads[:_NAMED])
        raise Missing(f"there is no thread #{number}", f"there are: {there or 'none'}", "")
    if len(found) > 1:
        channels = ", ".join(thread.channel for thread in found[:_NAMED])
        raise ToolError(
            f"#{number} may mean several threads", f"there is one in each of {channels}", "name the channel"
        )
    return found[0]


def kill(thread: Thread, user: str, id: str) -> dict[str, Any]:
    """The message that kills it, from this person."""
    words = {"type": "stop", "kill": True, "session_id": thread.session, "channel": thread.channel}
    return {"id": id, "user_id": user, "timestamp": messages.now(), "v": WIRE, **words}


async def listed(bus: Bus, names: Names, person: str, channel: str = "") -> list[Thread]:
    """The threads of a channel, or of all, that a person may see, by their numbers."""
    prefix = names.queue(CHATTER)
    found = []
    for one in await bus.script(scripts.THREADS, prefix, channel, owner(person)):
        place, number, session, state, whose, words, ends = (item.decode("utf-8", "replace") for item in one)
        at = datetime.fromtimestamp((int(ends) - HELD_MS) / 1000, UTC)
        found.append(Thread(place, int(number), session, state, whose, words, at))
    return sorted(found, key=lambda thread: (thread.channel, thread.number))
