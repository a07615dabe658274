"""Who speaks in a conversation's turn, and what they may claim together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.bus import messages
from shared.turns.turn import Turn
from shared.worker.permissions.approver import Approver, asked_by
from shared.worker.runners.inputs import TurnInput


class Participants:
    """The person of a turn, and everybody whose words joined it."""

    def __init__(self, turn: Turn, given: TurnInput) -> None:
        self._turn, self._input = turn, given
        self.who: dict[str, Any] = {}  # the person: user_id, user_name, roles
        self._shared = False  # words of somebody else joined the turn

    @property
    def person(self) -> str:
        """The person's id; "" where none is known."""
        return str(self.who.get("user_id", ""))

    @property
    def hops(self) -> int:
        """How many agents the question went through that opened the turn."""
        return max((request.hops for request in self._input.requests), default=0)

    async def identify(self) -> None:
        """Take the person from what opened the turn; where nobody spoke, from the session."""
        given = self._input
        first = next(iter([*given.said, *given.commands, *given.stops, *given.amends]), None)
        if first is None:
            self.who = await self._turn.queue.asker(self._turn.session)
            return
        self.who = {"user_id": first.user_id, "user_name": first.user_name, "roles": first.roles}
        self.join([*given.said, *given.amends])

    def join(self, spoken: Sequence[messages.Human]) -> None:
        """Words of somebody who may less lead to no more than they may."""
        for message in spoken:
            self._shared |= message.user_id != self.who.get("user_id")
            self.who["roles"] = [role for role in self.who.get("roles") or () if role in message.roles]

    def roles(self) -> frozenset[str]:
        """What all of them may claim; of an agent's request, what the person may on whose behalf it asks."""
        for request in self._input.requests:
            return asked_by(request).roles
        return frozenset(self.who.get("roles") or ())

    def approver(self) -> Approver:
        """Who is asked for permission: the person of this turn, or the one on whose behalf an agent asks."""
        for request in self._input.requests:
            return asked_by(request)
        return Approver(self.person, self._turn.session, in_turn=True, alone=lambda: not self._shared)
