"""Whose word a plain message is: signed by a gateway of ours, or anybody's.

What is not signed talks like anybody, and does no more: it allows nothing, runs no tool, claims no role and comes
into nobody's session. Who says it is a person of their own (`shared/people.py`). What the owner lets it do beyond
that stands in `UNSIGNED_MAY`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from shared import failpoints, people
from shared.bus import messages
from shared.bus.keys import HUMAN_INPUT, Names
from shared.bus.signing import Signer
from shared.errors import Refused
from shared.turns.queue import QueueEntry

MAY = frozenset({"approve", "command", "force", "roles", "session", "shutdown", "speak", "task"})
_ANSWERS = [*messages.ANSWERS, "progress"]


class Signatures:
    """Judges what the intake hears."""

    def __init__(self, names: Names, signer: Signer, may: frozenset[str] = frozenset()) -> None:
        self._human, self._signer, self._may = names.channel(HUMAN_INPUT), signer, may

    def may(self, what: str) -> bool:
        """Whether the owner lets unsigned messages do this."""
        return what in self._may or "all" in self._may or failpoints.without("signature")

    def signed(self, channel: str, content: dict[str, Any], since_ms: float = 0) -> bool:
        """Whether it is a word of the cluster's own gateways and workers."""
        return failpoints.without("signature") or self._signer.signed(channel, content, since_ms)

    def answers(self, channel: str, content: dict[str, Any]) -> bool:
        """Whether it may answer a request that an agent of the cluster was sent."""
        return self.may("speak") or self.signed(channel, content) or failpoints.without("own-answers")

    def cancels(self, channel: str, content: dict[str, Any], given: Sequence[QueueEntry]) -> bool:
        """Whether it may end this request: whoever did not sign takes back only what nobody signed."""
        if self.signed(channel, content):
            return True
        return bool(given) and json.loads(given[0].data).get("unsigned") is True

    def judge(self, channel: str, content: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The message as it counts, and whether it is its person's; Refused for what it may not say.

        A signature that is wrong is never taken for none.
        """
        if channel == self._human:
            unmarked(content.get("user_id"))
        answers = channel != self._human and content.get("type") in _ANSWERS
        if (
            content.get("sig") is not None and not answers
        ):  # a program may answer with all fields of the question
            self._signer.check(channel, content)
            return {name: value for name, value in content.items() if name != "unsigned"}, True
        plain = {**content, "unsigned": True}
        if channel != self._human:
            return self._agent(plain), False
        if self.may("approve"):
            del plain["unsigned"]
        return self._person(plain), self.may("session")

    def _person(self, plain: dict[str, Any]) -> dict[str, Any]:
        kind = plain.get("type", "message")
        if kind == "approval" and not self.may("approve"):
            raise _refused("an answer to a request for permission", "approve", "promptdock approvals")
        if kind == "command" and not self.may("command"):
            raise _refused("a command", "command", "promptdock tools call")
        if plain.get("force") and not self.may("force"):
            raise _refused("force", "force", "promptdock ask --force")
        if not self.may("roles"):
            plain.pop("roles", None)
        if self.may("session"):
            return plain
        plain.pop("shared", None)
        user, session = plain.get("user_id"), plain.get("session_id")
        if session is None and isinstance(user, str) and not _finds(plain):
            place = plain.get("channel")
            own = messages.in_channel(user, place, messages.PLAIN) if isinstance(place, str) and place else ""
            plain["session_id"] = own or messages.default_session(user, messages.PLAIN)
        elif isinstance(session, str) and session.startswith(messages.RESERVED_SESSIONS):
            raise _refused("a message to the session of a person", "session", "promptdock ask")
        # Whom the owner lets answer, answers as the person who was asked.
        return (
            plain
            if kind == "approval" or not isinstance(user, str)
            else plain | {"user_id": people.claimed(user)}
        )

    def _agent(self, plain: dict[str, Any]) -> dict[str, Any]:
        if plain.get("type") == "task" and not self.may("task"):
            raise _refused("a task", "task", "promptdock ask")
        if not self.may("roles"):
            plain.pop("on_behalf_of", None)
            plain.pop("origin", None)  # what nobody says of themselves may have read anything
        return plain


def unmarked(user: object) -> None:
    """Refused for a name that stands for somebody who did not sign."""
    if isinstance(user, str) and user.startswith(people.CLAIM):
        raise Refused(
            f"nobody is called {user[:100]!r}", f"a name does not begin with {people.CLAIM}", "leave it out"
        )


def _finds(plain: dict[str, Any]) -> bool:
    """Whether its session is found by what it replies to, or begun by it."""
    return any(plain.get(name) for name in ("reply_to", "thread", "replies"))


def _refused(what: str, word: str, command: str) -> Refused:
    return Refused(
        f"{what} must be signed",
        "nobody knows who sent it",
        f"use {command}, sign it as docs/wire.md says, or let everybody do it: UNSIGNED_MAY={word}",
    )
