"""Who is asked for permission in a turn, and on whose behalf an agent asks another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shared.bus import messages
from shared.store.origin import Origin


@dataclass(frozen=True)
class Approver:
    """Who is asked for permission, and in which session. `consents`: they called the tool themselves."""

    user_id: str = ""
    session: str = ""
    project: str = ""
    consents: bool = False
    in_turn: bool = False  # the turn's closing output goes to people, and closes their answers too
    roles: frozenset[str] = frozenset()  # that they claim
    alone: Callable[[], bool] = lambda: True  # whether all words of the turn are theirs
    maker: Origin | None = None  # of the task that is worked on

    @property
    def who(self) -> tuple[str, str]:
        """The person and the conversation."""
        return self.user_id, self.session


def asked_by(request: messages.AgentMessage) -> Approver:
    """The person on whose behalf another agent asks; nobody where it names none."""
    named = (request.model_extra or {}).get("on_behalf_of")
    person = named if isinstance(named, dict) else {}
    roles = person.get("roles")
    return Approver(
        str(person.get("user_id") or "")[:200],
        str(person.get("session_id") or "")[:200],
        roles=frozenset(map(str, roles)) if isinstance(roles, list) else frozenset(),
        maker=origin_of(request) if request.type == "task" else None,
    )


def origin_of(request: messages.AgentMessage) -> Origin:
    """Who made a request, and what they had read; a program that does not say so may have read anything."""
    kept = (request.model_extra or {}).get("origin")
    found = Origin.of(kept)
    return (
        found
        if isinstance(kept, dict)
        else Origin(by=request.sender, foreign=f"the words of {request.sender}")
    )
