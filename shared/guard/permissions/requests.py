"""Approvals: a question to a person about one call, and its one answer.

The question's truth is the journal of the turn that asks (an `AskRecord`, later a `DecidedRecord`). So that it
can be found by its id alone, whoever answers wherever, its card lies in Redis beside the first answer to
it: one hash for each approval, whose field `decision` is written once and never again. The rows in the Store are for
looking at.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from shared import failpoints, log, people
from shared.bus.base import Bus
from shared.bus.keys import CHATTER, DAY, Names
from shared.guard.permissions.display import plainly
from shared.guard.permissions.policy import literal
from shared.redaction import redacted
from shared.store.records import Approval
from shared.store.row import derived

How = Literal["allow_once", "always", "deny", "expired", "withdrawn"]
OPTIONS = ("allow_once", "always", "deny")
_ONCE = ("allow_once", "deny")  # where nobody could hold a standing permission
_KEPT_MS = 2 * DAY * 1000  # after it has expired, so that a late answer is told what became of it
_ARGUMENTS = 8000  # characters of all arguments together that a card shows


def fingerprint(arguments: Mapping[str, Any]) -> str:
    """SHA-256 of the arguments as canonical JSON: the same arguments, the same text."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class ApprovalRequest:
    """One question. `id` follows from the agent and the key of its call; times are the server's milliseconds.

    `session` and `user_id` are of the person who is asked; `turn` and `home` (a session of the agent's
    queue) are where the answer is waited for. `in_turn`: that turn's closing output closes the answer too.
    """

    id: str
    call: str
    agent: str
    session: str
    user_id: str
    turn: str
    home: str
    tool: str
    action: str
    arguments: dict[str, Any]
    arguments_hash: str
    why: str
    pattern: str
    project: str
    at: int
    expires_at: int
    in_turn: bool = False
    bound: dict[str, str] = field(default_factory=dict)  # facts that hold now, and must when the yes is used
    about: dict[str, Any] = field(default_factory=dict)  # in words: see shared/guard/permissions/about.py
    queue: str = ""  # in which the turn is, where that is not the agent's own

    @property
    def options(self) -> tuple[str, ...]:
        """What may be answered: `always` only where it is known who asked, and so whose it would be."""
        return OPTIONS if self.user_id and people.signs(self.user_id) else _ONCE

    def shown(self) -> dict[str, Any]:
        """How every surface shows it: no code point in it that is not plainly visible."""
        arguments = plainly(self.arguments)
        if len(json.dumps(arguments, ensure_ascii=False)) > _ARGUMENTS:
            arguments = plainly(self.arguments, _ARGUMENTS // max(1, 2 * len(self.arguments)))
        return {
            "id": self.id,
            "agent": self.agent,
            "session": self.session,
            "tool": self.tool,
            "action": plainly(self.action),
            "arguments": arguments,
            "arguments_hash": self.arguments_hash,
            "why": plainly(self.why),
            "bound": plainly(self.bound),
            "about": plainly(self.about),
            "project": plainly(self.project),
            "options": list(self.options),
            "pattern": self._told(),
            "expires_at": _iso(self.expires_at),
        }

    def _told(self) -> str:
        """The pattern as it is shown: of an action that holds a secret, that of what is shown of it."""
        action = log.redact(self.action)
        return self.pattern if action == self.action else literal(action)

    def row(self, decided: Decided | None = None) -> Approval:
        """As the Store lists it."""
        settled = decided or Decided("withdrawn")
        return Approval(
            id=derived("approval", self.id),
            created_at=_time(self.at),
            approval_id=self.id,
            agent=self.agent,
            session_id=self.session or None,
            turn_id=self.turn,
            call_id=self.call,
            user_id=self.user_id or None,
            action=storable(self.action),
            arguments=redacted(plainly(self.arguments)),
            arguments_hash=self.arguments_hash,
            why=storable(self.why),
            bound=plainly(self.bound),
            state=settled.how if decided else "pending",
            decided_by=settled.by or None,
            reason=storable(settled.reason),
            pattern=storable(settled.pattern) or self._told(),
            scope=settled.scope or None,
            expires_at=_time(self.expires_at),
            decided_at=_time(settled.at) if decided else None,
        )


@dataclass(frozen=True)
class Decided:
    """What became of a question. `message` is the id of the message that decided it."""

    how: How
    by: str = ""
    reason: str = ""
    pattern: str = ""
    scope: str = ""
    message: str = ""
    at: int = 0
    roles: list[str] = field(default_factory=list)

    @property
    def allows(self) -> bool:
        return self.how in ("allow_once", "always")

    def told(self, person: str = "") -> str:
        """In words: `allowed once by ada`; `person` is for whom a standing permission holds."""
        words = {
            "allow_once": "allowed once",
            "always": "allowed for good",
            "deny": "denied",
            "expired": "not answered in time: it expired",
            "withdrawn": "withdrawn, because its turn ended",
        }[self.how]
        by = f" by {self.by}" if self.by else ""
        if self.how == "always" and person and person != self.by:
            by += f", for {person}"
        return f"{words}{by}" + (f" ({self.reason})" if self.reason and self.by else "")


class Approvals:
    """The cards and their decisions in Redis."""

    def __init__(self, bus: Bus, names: Names) -> None:
        self._bus, self._names = bus, names

    async def open(self, card: ApprovalRequest) -> None:
        """Lay down a card; one that lies there already stays as it is."""
        key = self._names.approval(card.id)
        await self._bus.command("HSETNX", key, "card", json.dumps(asdict(card), ensure_ascii=True))
        await self._bus.command("PEXPIREAT", key, card.expires_at + _KEPT_MS)

    async def find(self, id: str) -> ApprovalRequest | None:
        """The card of that id; None for an unknown one."""
        data = await self._bus.command("HGET", self._names.approval(id), "card")
        return ApprovalRequest(**json.loads(data)) if data else None

    def open_in(self, session: str) -> str:
        """The key of the requests that are open in a person's session: a hash of id -> when it expires."""
        return self._names.keys(CHATTER).open_requests(session)

    async def waiting(self, session: str) -> list[ApprovalRequest]:
        """The requests that are open in a person's session, the oldest first."""
        ids = await self._bus.command("HKEYS", self.open_in(session))
        found = [await self.find(id.decode()) for id in ids]
        cards = [card for card in found if card is not None and await self.decision(card.id) is None]
        return sorted(cards, key=lambda card: card.at)

    async def everywhere(self) -> list[ApprovalRequest]:
        """The requests that are open in any session, the oldest first."""
        before, found = self.open_in(""), list[ApprovalRequest]()
        pattern, cursor = re.sub(r"([\\\[\]*?])", r"\\\1", before) + "*", b"0"
        while True:
            cursor, keys = await self._bus.command("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            for key in keys:
                found += await self.waiting(key.decode().removeprefix(before))
            if int(cursor) == 0:
                break
        return sorted({card.id: card for card in found}.values(), key=lambda card: card.at)

    async def decision(self, id: str) -> Decided | None:
        """What was decided."""
        data = await self._bus.command("HGET", self._names.approval(id), "decision")
        return Decided(**json.loads(data)) if data else None

    async def decide(self, id: str, decided: Decided) -> Decided:
        """Decide, unless it is decided already; what holds now. Made again, it comes to the same."""
        key = self._names.approval(id)
        write = "HSET" if failpoints.without("one-answer") else "HSETNX"
        await self._bus.command(write, key, "decision", json.dumps(asdict(decided), ensure_ascii=True))
        held = await self.decision(id)
        if held is None:  # the key ended between the two: nobody can have been told of anything else
            return decided
        return held

    async def first(self, id: str, mark: str) -> bool:
        """Whether this was not marked before: what is shown once is not shown again after a restart."""
        return bool(await self._bus.command("HSETNX", self._names.approval(id), mark, "1"))

    async def marked(self, id: str, mark: str) -> bool:
        """Whether it is marked."""
        return bool(await self._bus.command("HEXISTS", self._names.approval(id), mark))


def storable(text: str) -> str:
    """Text as the Store may keep it: without secrets, and without NUL, which no database takes."""
    return log.redact(text).replace("\0", "\\0")


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _iso(ms: int) -> str:
    return _time(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
